"""The form of a list's query: a GET form without a script, and what its page tells of the query."""

import html
import re
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

from orders.models import Order


class Form(HTMLParser):
    """The form of a page that asks for a list: its hidden fields, and the others, each with the value it has."""

    def __init__(self, response):
        super().__init__()
        self.action, self.hidden, self.own, self.choices = None, {}, {}, {}
        self._select, self._is_chosen = None, False
        self.feed(re.search('<form class="query".*?</form>', response.content.decode(), re.DOTALL)[0])

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "form":
            self.action = given["action"]
        if tag == "input":
            (self.hidden if given.get("type") == "hidden" else self.own)[given["name"]] = given["value"]
        if tag == "select":
            self._select = given["name"]
            self.own[self._select], self.choices[self._select] = "", []
        if tag == "option":
            self._is_chosen = "selected" in given

    def handle_data(self, data):
        if self._select and data.strip():
            self.choices[self._select].append(data)
            if self._is_chosen:
                self.own[self._select], self._is_chosen = data, False

    def handle_endtag(self, tag):
        if tag == "select":
            self._select = None

    def submit(self, ask, **values):
        """The answer to the form as a browser without scripts sends it: with its empty fields, too."""
        return ask(f"{self.action}?{urlencode({**self.hidden, **self.own, **values})}")


def shown_address(response):
    found = re.search(rb'data-address="([^"]*)"', response.content)[1]
    return html.unescape(found.decode())


def test_form_keeps_the_query_and_begins_at_the_start_of_the_list(ada, make_user):
    make_user()
    form = Form(ada("/users?version=2&limit=5&sort=name&status=active&fields=id,name,role&page=3"))
    assert (form.hidden, form.own["status"], form.own["sort"]) == ({"version": "2", "page": "1"}, "active", "name")
    assert form.choices["sort"] == ["default", "id", "name", "email", "created_at", "updated_at"]
    found = form.submit(ada, role="user")
    assert found.status_code == 200
    kept = "/users?version=2&page=1&status=active&role=user&sort=name&limit=5&fields=id,name,role"
    assert shown_address(found) == kept
    # A program that sends an empty value is told so.
    assert ada("/api/v2/users?role=", Accept="application/json").status_code == 400


def test_empty_fields_are_dropped_but_for_the_beginning_of_a_walk(ada):
    page = ada("/api/v2/users?role=&cursor=&status=active&limit=")
    assert (page.status_code, shown_address(page)) == (200, "/api/v2/users?cursor=&status=active")
    assert Form(page).hidden == {"cursor": ""}
    assert ada("/api/v2/users?nothing=").status_code == 200
    assert ada("/api/v2/users?role=nobody").status_code == 400


def test_what_a_list_refuses_is_told_beside_the_form_that_asked(ada):
    page = ada("/api/v2/orders?qty[gt]=many&created_at[lt]=2030-01-01T00:00:00Z&sort=item")
    assert page.status_code == 400
    assert '<li data-field="qty[gt]">' in page.content.decode()
    form = Form(page)
    assert (form.own["qty[gt]"], form.own["sort"]) == ("many", "item")
    assert '<details class="raw" open><summary>Ranges</summary>' in page.content.decode()
    found = form.submit(ada, sort="", **{"qty[gt]": ""})
    assert found.status_code == 200
    # Without a sort, the list is in the order of its bounds.
    assert re.search(r'aria-sort="ascending"><a href="[^"]*">created_<wbr>at', found.content.decode())


@pytest.mark.parametrize(
    "path",
    [
        *("/api/v1/users?role=user&sort=email", "/api/v2/users", "/api/v2/posts?cursor="),
        *("/api/v2/orders", "/api/v2/payments?page=1", "/api/v2/users/{0.pk}/orders?limit=1"),
        "/api/v2/api-keys?sort=name&order=desc",
    ],
)
def test_every_filter_of_a_list_leads_to_a_list(ada, make_user, path):
    user = make_user()
    Order.objects.create(user=user, item="Tea", qty=3)
    page = ada(path.format(user))
    assert page.status_code == 200
    form = Form(page)
    for name, choices in form.choices.items():
        for choice in choices:
            value = "" if choice in {"any", "default"} else choice
            assert form.submit(ada, **{name: value}).status_code == 200, (name, value)
    for name in form.own.keys() - form.choices.keys() - {"limit", "fields"}:
        value = "2026-01-01T00:00:00Z" if "_at" in name else "1"
        assert form.submit(ada, sort="", **{name: value}).status_code == 200, (name, value)
    links = re.findall(r'<th[^>]*><a href="([^"]*)"', page.content.decode())
    assert len(links) >= 2
    for link in links:
        assert ada(html.unescape(link)).status_code == 200, link


def test_filters_are_those_that_the_version_has_and_the_caller_may_use(ada, uma, signed_in):
    assert list(Form(ada("/api/v1/users")).own) == [
        *("status", "role", "email", "external_id", "sort", "order", "limit", "fields")
    ]
    assert list(Form(ada("/api/v2/orders")).own)[:2] == ["q", "id"]
    assert "user_id" in Form(ada("/api/v2/orders")).own
    assert "user_id" not in Form(signed_in(uma)("/api/v2/orders")).own


def test_several_values_of_a_choice_stay_chosen(ada):
    page = ada("/api/v2/users?role=admin,support&q=%3Cb%3E")
    assert Form(page).own["role"] == "admin,support"
    assert "No results." in page.content.decode()
