"""The page of a list: a table whose ids and heads are links, and the form of its query."""

import re

import pytest

from orders.models import Order
from posts.models import Post
from tests.api.browsable.conftest import ada_token
from tests.events.webhooks.rows import make_pair


@pytest.mark.parametrize("more", ["", "&envelope=false"])
def test_rows_of_a_list_are_a_table_whose_ids_are_links(ada, make_user, more):
    owner = make_user()
    post = Post.objects.create(user=owner, title="A <b>title", body="x" * 200)
    text = ada(f"/api/v2/posts?sort=title{more}").content.decode()
    assert f'<a href="/api/v2/posts/{post.pk}">{post.pk}</a>' in text
    assert f'<a href="/api/v2/users/{owner.pk}">{owner.pk}</a>' in text
    assert "<bdi>A &lt;b&gt;title</bdi>" in text
    assert f"<bdi>{'x' * 80}…</bdi>" in text
    # The JSON is a click away.
    assert re.search(r'<details class="body"><summary>JSON</summary>\s*<pre class="json">', text)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v2/users/{0.user_id}/orders", "/api/v2/orders/{0.id}"),
        ("/users/{0.user_id}/orders?version=2", "/orders/{0.id}?version=2"),
        ("/api/orders?fields=id", "/api/orders/{0.id}"),
    ],
)
def test_rows_lead_to_the_addresses_of_their_resource(ada, make_user, path, target):
    order = Order.objects.create(user=make_user(), item="Tea", qty=1)
    text = ada(path.format(order)).content.decode()
    assert f'href="{target.format(order)}">{order.id}</a>' in text


@pytest.mark.parametrize("more", ["", "?fields=id", "?fields=type&envelope=false"])
def test_rows_below_a_parent_lead_to_their_addresses_below_it(ada, make_user, more):
    pk = make_pair(make_user())
    path = f"/api/v2/webhooks/{pk}/deliveries"
    response = ada(f"{path}{more}")
    assert response.status_code == 200
    assert (f'href="{path}/{pk}">{pk}</a>' in response.content.decode()) == ("type" not in more)


def test_column_heads_sort_and_keep_the_filters(ada, make_user):
    make_user()
    text = ada("/api/v2/users?status=active&sort=name&order=asc&page=2&limit=1").content.decode()
    kept = "/api/v2/users?status=active&amp;limit=1"
    assert f'aria-sort="ascending"><a href="{kept}&amp;sort=name&amp;order=desc&amp;page=1">' in text
    assert f'href="{kept}&amp;sort=email&amp;order=asc&amp;page=1"' in text
    assert '<th scope="col">role</th>' in text


@pytest.mark.parametrize("path", ["/", "/versions", "/users", "/api/v1/users", "/api/v2/users", "/api/v2/users/{}"])
def test_page_ignores_the_parameters_of_a_tracked_link(ada, uma, path):
    tracked = f"{path.format(uma.pk)}?utm_source=news%20letter&fbclid=1&utm_source=2&gclid="
    page = ada(tracked)
    assert (page.status_code, ada(tracked, "HEAD").status_code) == (200, 200)
    # The link to the next version is one to a page again.
    if "v1" not in path:
        assert not re.search("utm_source|fbclid|gclid", page.content.decode() + page.headers.get("Link", ""))
        assert ada.client.get(tracked, headers={"Accept": "application/json;version=2"}).status_code == 400


def test_form_of_a_page_is_strict(ada, uma):
    form = {"X-CSRFToken": ada_token(ada)}
    assert ada(f"/api/v2/users/{uma.pk}?gclid=1", "DELETE", **form).status_code == 400


def test_page_of_a_deprecated_version_leads_to_the_current_one(ada):
    text = ada("/api/v1/users").content.decode()
    assert re.search(r'This version is deprecated. <a href="[^"]*/api/v2/users">', text)
    assert "is deprecated" not in ada("/api/v2/users").content.decode()


@pytest.mark.parametrize("path", ["/api/v2/orders", "/orders", "/orders?version=2", "/api/orders"])
def test_whole_list_is_offered_in_the_version_of_the_page(ada, path):
    text = ada(f"{path}{'&' if '?' in path else '?'}sort=qty&page=1&limit=5").content.decode()
    assert '<p class="downloads" data-address="/api/v2/orders?sort=qty">' in text
    assert re.search(r'<button type="button"[^>]* data-type="text/csv"[^>]*>CSV</button>', text)
    assert 'class="downloads"' not in ada("/api/v1/orders").content.decode()
    assert 'class="downloads"' not in ada("/api/v2/versions").content.decode()
