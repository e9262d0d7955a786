"""The pages of the browsable API, as bytes. Their use in a browser is tested in tests/browser."""

import html
import json
import re

import pytest

from config.http.errors import DomainError
from config.http.request_limits import screen
from config.models import AuditEvent
from config.server.answers import refuse
from orders.models import Order
from payments.models import Payment
from tests.api.browsable.conftest import HTML, ada_token, shown_json
from tests.api.wire import quickly
from tests.conftest import new_client


@pytest.mark.parametrize(
    "path", ["/api", "/versions", "/api/v1/users", "/api/v2/users?cursor=", "/api/v2/users/{}", "/users?envelope=false"]
)
def test_page_shows_the_json_that_a_program_gets(ada, uma, path):
    path = path.format(uma.pk)
    as_json = ada(path, Accept="application/json")
    page = ada(path)
    assert json.loads(shown_json(page)) == json.loads(as_json.content)
    assert re.sub(r"\s+(?=([^\"]*\"[^\"]*\")*[^\"]*$)", "", shown_json(page)) == as_json.content.decode()


HEADINGS = {
    "/api": "Entry",
    "/api/v2": "Entry",
    "/versions": "Versions",
    "/users": "Users",
    "/users/{}": "User {}",
    "/users/{}/orders": "User Orders",
    "/users/{}/payments": "User Payments",
    "/users/{}/posts": "User Posts",
    "/orders": "Orders",
    "/payments": "Payments",
    "/posts": "Posts",
    "/api-keys": "API Keys",
    "/api/protected": "Protected",
    "/health/live": "Live",
    "/health/ready": "Ready",
}


@pytest.mark.parametrize(("path", "heading"), HEADINGS.items())
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_every_address_is_a_page_that_says_what_it_is(ada, uma, page_of, *, path, heading, method):
    response = ada(path.format(uma.pk), method)
    page_of(response)
    assert re.findall("<h1>(.*?)</h1>", response.content.decode()) == [heading.format(uma.pk)]


def test_page_shows_each_header_of_the_answer(ada, uma):
    path = f"/api/v1/users/{uma.pk}"
    as_json, page = ada(path, Accept="application/json"), ada(path)
    text = html.unescape(re.sub("<[^>]*>", " ", page.content.decode()))
    for name in ("ETag", "API-Version", "RateLimit-Policy", "Deprecation", "Sunset", "Allow", "Cache-Control"):
        assert f"{name}  {as_json.headers[name]}" in text, name
    assert "ETag" not in page.headers
    assert page.headers["Request-Id"] in text


def test_numbers_are_shown_digit_by_digit(ada, make_user):
    Payment.objects.create(user=make_user(), amount="9999999999.99", id=9_007_199_254_740_993)
    for version, amount in ((1, "9999999999.99"), (2, '"9999999999.99"')):
        shown = shown_json(ada(f"/api/v{version}/payments/9007199254740993"))
        assert f'"amount": {amount}' in shown
        assert '"id": 9007199254740993' in shown


def test_links_of_body_and_headers_click(ada, uma, page_of):
    page = page_of(ada(f"/api/v1/users/{uma.pk}"))
    path = f"/api/v1/users/{uma.pk}"
    assert {path, f"{path}/orders", f"{path}/posts", f"{path}/payments", "/docs/versions"} <= set(page.links)
    created = page_of(
        ada("/orders", "POST", b'{"item": "a", "qty": 1}', "application/json", X_CSRFToken=ada_token(ada)), 201
    )
    assert f"/orders/{Order.objects.get().pk}" in created.links


def test_breadcrumbs_link_to_the_paths_above(ada, uma, page_of):
    page = page_of(ada(f"/api/v2/users/{uma.pk}/orders"))
    assert {"/api/v2", "/api/v2/users", f"/api/v2/users/{uma.pk}"} <= set(page.links)
    page = page_of(ada("/health/live"))
    assert "/health" not in page.links


def test_what_is_refused_for_its_length_is_answered_at_once(db):
    """To parse either would take seconds."""
    for path, accept, media_type in [
        ("/a" * 30_000, HTML, "text/html; charset=utf-8"),
        ("/", f"{HTML},{','.join(f'application/vnd.users.v{n}+json' for n in range(2_000))}", "application/json"),
    ]:
        environ = {"PATH_INFO": path, "HTTP_ACCEPT": accept}
        with pytest.raises(DomainError) as refused:
            screen(environ)
        refuse(environ, refused.value)
        with quickly(0.2):
            response = new_client().generic("GET", path, **environ)
        assert (response.status_code, response.headers["Content-Type"]) == (400, media_type)


@pytest.mark.parametrize("path", ["/api/v9/login", "/api/login?version=9", "/api/v1/logout?version=2"])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_page_of_a_refused_version_is_that_error(ada, page_of, path, method):
    page_of(ada(path, method, X_CSRFToken=ada_token(ada)), 404 if "v9" in path else 400)


def test_bad_credential_is_tried_once_for_a_page_too(db, page_of):
    headers = {"Accept": HTML, "X-API-Key": "urs_bad"}
    page_of(new_client().get("/users/1", headers=headers), 401)
    assert list(AuditEvent.objects.values_list("event", flat=True)) == ["api_key.refused"]


def test_bad_credential_does_not_show_who_is_signed_in(ada, page_of):
    refused = ada("/users/1", X_API_Key="urs_bad")
    page_of(refused, 401)
    assert b"Ada Admin" not in refused.content


def test_versions_of_the_same_resource_can_be_chosen(ada, page_of):
    page = page_of(ada("/users?version=2&sort=name"))
    assert {"/api/v1/users?sort=name", "/api/v2/users?sort=name"} <= set(page.links)


@pytest.mark.parametrize(
    ("path", "rels"),
    [
        ("/users?limit=1&page=2", ["first", "prev", "next", "last"]),
        ("/users?limit=1&offset=1", ["first", "prev", "next", "last"]),
        ("/users?limit=1&cursor=", ["first", "next"]),
        ("/users?limit=1&page=2&envelope=false", ["first", "prev", "next", "last"]),
    ],
)
def test_pages_of_a_list_are_links(ada, make_user, path, rels):
    for _ in range(2):
        make_user()
    text = ada(path).content.decode()
    navigation = re.search(r'aria-label="Pages">(.*?)</nav>', text, re.DOTALL)[1]
    assert re.findall(r">(first|prev|next|last)</a>", navigation) == rels
