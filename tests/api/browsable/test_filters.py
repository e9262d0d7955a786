"""The filters in the heads of a list's columns: GET forms without a script, each of which leads to a list."""

import html
import re
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

from orders.models import Order


class Forms(HTMLParser):
    """The forms of a page that ask for a list: their hidden fields, and the others, each with the value it has."""

    def __init__(self, response):
        super().__init__()
        self.forms, self._form, self._select, self._is_chosen = [], None, None, False
        self.feed(response.content.decode())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "form" and "query" in given.get("class", ""):
            self._form = {"action": given["action"], "hidden": {}, "own": {}, "choices": {}}
            self.forms.append(self._form)
        if self._form is None:
            return
        if tag == "input":
            kind = "hidden" if given.get("type") == "hidden" else "own"
            self._form[kind][given["name"]] = given["value"]
        if tag == "select":
            self._select = given["name"]
            self._form["own"][self._select], self._form["choices"][self._select] = "", []
        if tag == "option":
            self._is_chosen = "selected" in given

    def handle_data(self, data):
        if self._form and self._select and data.strip():
            self._form["choices"][self._select].append(data)
            if self._is_chosen:
                self._form["own"][self._select], self._is_chosen = data, False

    def handle_endtag(self, tag):
        if tag == "form":
            self._form = None
        if tag == "select":
            self._select = None

    def find(self, name):
        (found,) = (form for form in self.forms if name in form["own"])
        return found


def submit(ask, form, **values):
    """The answer to a form as a browser without scripts sends it: with its empty fields, too."""
    return ask(f"{form['action']}?{urlencode({**form['hidden'], **form['own'], **values})}")


def shown_address(response):
    found = re.search(rb'data-address="([^"]*)"', response.content)[1]
    return html.unescape(found.decode())


def test_filter_of_a_column_keeps_what_goes_with_it(ada, make_user):
    make_user()
    form = Forms(ada("/api/v2/users?limit=5&sort=name&status=active&fields=id,name,role")).find("role")
    found = submit(ada, form, role="user")
    assert found.status_code == 200
    assert shown_address(found) == "/api/v2/users?limit=5&sort=name&status=active&fields=id%2Cname%2Crole&role=user"
    # Empty, it lifts the filter. A program that sends an empty value is still told so.
    assert shown_address(submit(ada, form)) == "/api/v2/users?limit=5&sort=name&status=active&fields=id,name,role"
    assert ada("/api/v2/users?role=", Accept="application/json").status_code == 400


def test_empty_fields_are_dropped_but_for_the_beginning_of_a_walk(ada):
    page = ada("/api/v2/users?role=&cursor=&status=active&limit=")
    assert (page.status_code, shown_address(page)) == (200, "/api/v2/users?cursor=&status=active")
    assert ada("/api/v2/users?nothing=").status_code == 200
    assert ada("/api/v2/users?role=nobody").status_code == 400


def test_bounds_sort_by_their_column_and_say_what_they_leave_out(ada):
    page = ada("/api/v2/orders?sort=qty&order=desc&qty[gte]=2&page=3")
    form = Forms(page).find("created_at[gte]")
    assert list(form["own"]) == [f"created_at[{bound}]" for bound in ("gte", "gt", "lt", "lte")]
    assert form["hidden"] == {"order": "desc", "sort": "created_at", "page": "1"}
    assert "Sorts by created_at and removes qty[gte]." in page.content.decode()
    found = submit(ada, form, **{"created_at[gte]": "2026-01-01T00:00:00Z"})
    assert found.status_code == 200
    text = found.content.decode()
    # The order of another column removes the bound, too, and the page says so.
    assert "Sorting by id, item, qty removes the filter <code>created_at[gte]</code>." in text
    assert 'order=asc&amp;page=1">qty</a>' in text
    assert "Not available with these filters: id, item, qty." in text
    assert Forms(found).find("sort")["choices"]["sort"] == ["created_at"]


@pytest.mark.parametrize(
    "path",
    [
        *("/api/v1/users?role=user&sort=email", "/api/v2/users"),
        "/api/v2/users?role=admin,user&sort=name&q=a&limit=3",
        "/api/v2/users?created_at[lt]=2030-01-01T00:00:00Z&sort=created_at&status=active&fields=id",
        *("/api/v2/users?id=1,2&cursor=", "/orders?user_id=1,2&sort=created_at&order=desc&version=2"),
        *("/api/v2/orders?qty[lt]=7&sort=qty&q=tea&page=1", "/api/v2/payments?amount[gt]=1&sort=amount&user_id=1"),
        *("/api/v2/posts?q=some+words&sort=title", "/api/v2/users/{0.pk}/orders?qty[gt]=1&sort=qty&limit=1"),
        "/api/v2/api-keys?sort=name&order=desc",
    ],
)
def test_everything_that_a_list_offers_leads_to_a_list(ada, make_user, path):
    user = make_user()
    Order.objects.create(user=user, item="Tea", qty=3)
    page = ada(path.format(user))
    assert page.status_code == 200
    forms = Forms(page).forms
    assert len(forms) >= 3
    for form in forms:
        for name, choices in form["choices"].items():
            for choice in choices:
                value = "" if choice == "any" else choice
                assert submit(ada, form, **{name: value}).status_code == 200, (form, name, value)
        for name in form["own"].keys() - form["choices"].keys() - {"limit", "fields"}:
            value = "2026-01-01T00:00:00Z" if "_at" in name else "1"
            assert submit(ada, form, **{name: value}).status_code == 200, (form, name, value)
    table = page.content.decode().partition('<div class="rows"')[0:3:2]
    links = re.findall(r'<th[^>]*><a href="([^"]*)"', table[1]) + re.findall(r'</code> <a href="([^"]*)"', table[0])
    assert len(links) >= 3
    for link in links:
        assert ada(html.unescape(link)).status_code == 200, link


def test_filters_are_those_that_the_version_has_and_the_caller_may_use(ada, uma, signed_in):
    names = {name for form in Forms(ada("/api/v1/users")).forms for name in form["own"]}
    assert names == {"status", "role", "email", "external_id", "sort", "order", "limit", "fields"}
    assert any("user_id" in form["own"] for form in Forms(ada("/api/v2/orders")).forms)
    assert not any("user_id" in form["own"] for form in Forms(signed_in(uma)("/api/v2/orders")).forms)


def test_what_is_chosen_is_listed_each_with_a_way_out(ada):
    text = ada("/api/v2/users?q=%3Cb%3E&role=admin&limit=3").content.decode()
    assert '<code>q=&lt;b&gt;</code> <a href="/api/v2/users?role=admin&amp;limit=3">' in text
    assert '<code>role=admin</code> <a href="/api/v2/users?q=%3Cb%3E&amp;limit=3">' in text
    assert "No results match these filters." in text


def test_filter_that_is_refused_stands_in_its_open_form(ada):
    response = ada("/api/v2/orders?qty[gt]=many&sort=qty")
    assert response.status_code == 400
    assert Forms(response).find("qty[gt]")["own"]["qty[gt]"] == "many"
    text = response.content.decode()
    assert re.findall(r'<details class="filter" open>\s*<summary aria-label="([^"]*)"', text) == ["Filtered by qty"]


def test_filters_by_fields_that_are_not_shown_stand_beside_the_table(ada):
    text = ada("/api/v2/users?fields=id,name").content.decode()
    beside = text[text.index('<div class="others"') : text.index('<div class="rows"')]
    assert re.findall(r"<div><code>(\w+)</code>", beside) == [
        "status",
        "role",
        "email",
        "external_id",
        "created_at",
        "updated_at",
    ]
