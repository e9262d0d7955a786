"""What holds for every endpoint that the URL map has; who may do what there is test_matrix.py."""

import pytest
from django.urls import resolve
from rest_framework.settings import api_settings

from config.api.permissions import PublicPermission, ResourcePermission
from config.api.schema.generator import Generator
from config.models import AuditEvent
from tests.conftest import PASSWORD, Caller, with_bearer_of, with_key, with_password
from tests.contract.routes import resource_routes, root_only, routes

ROUTES = routes()
READ = [route for route in ROUTES if "GET" in route.methods]
LISTS = [route for route in resource_routes() if route.is_list]
ITEMS = [route for route in resource_routes() if ("get", "retrieve") in route.actions]
# What needs no credential beside its body.
IN_BODY = {"login", "logout", "token/refresh", "password-resets", "password-resets/<token>"}
BODY_IS_CREDENTIAL = [route for route in ROUTES if route.template in IN_BODY]
PUBLIC = [route for route in ROUTES if route.template in {*IN_BODY, "email-verifications/<token>", "versions"}]
WITHOUT_FIELDS = {"email-verifications/<token>", "users/<user_id>/email-verifications", "users/<user_id>/invitations"}
WITHOUT_FIELDS |= {"webhooks/<webhook_id>/pings", "webhooks/<webhook_id>/deliveries/<delivery_id>/retries"}
WITH_BODY = [(route, method) for route in ROUTES for method in sorted(route.methods & {"POST", "PUT", "PATCH"})]


@pytest.fixture
def reader(user, make_user, route):
    """Who may read what is there: the plain user, but for what is the administrators'."""
    return with_key(make_user("admin")) if route.template == "audit-events" else user


def collection(route):
    return route.template.split("/")[0]


def fill(route, ids):
    return route.path(**ids[collection(route)])


def test_every_view_declares_its_permissions():
    for route in ROUTES:
        for permission in route.view.permission_classes:
            assert issubclass(permission, ResourcePermission), route
        assert (PublicPermission in route.view.permission_classes) == (route in PUBLIC), route
    assert [ResourcePermission] == api_settings.DEFAULT_PERMISSION_CLASSES


@pytest.mark.parametrize("route", BODY_IS_CREDENTIAL, ids=str)
def test_where_the_body_is_the_credential_no_other_is_looked_at(db, route):
    for headers in [{}, {"Authorization": "Bearer none"}, {"X-API-Key": "none"}]:
        answer = Caller(headers=headers).post(route.path(token="x"), {})
        assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("route", LISTS, ids=str)
def test_every_list_is_enveloped_paged_and_linked(reader, ids, route):
    path = fill(route, ids)
    AuditEvent.objects.filter(user=reader.user).delete()
    answer = reader.get(f"{path}?limit=1")
    assert set(answer.body) == {"success", "data", "meta", "_links"}
    assert answer.meta == {"page": 1, "limit": 1, "total": 1, "totalPages": 1}
    assert len(answer.data) == 1
    assert "_links" not in answer.data[0]
    assert answer.body["_links"]["self"]["href"] == f"{path}?limit=1"
    walked = reader.get(f"{path}?cursor=")
    assert walked.meta == {"nextCursor": None, "prevCursor": None, "hasMore": False}
    assert walked.data == answer.data
    assert reader.get(f"{path}?page=0").fields == {"page"}


@pytest.mark.parametrize("route", ITEMS, ids=str)
def test_every_single_resource_links_to_itself(user, ids, route):
    path = fill(route, ids)
    answer = user.get(path)
    assert set(answer.body) == {"success", "data"}
    assert answer.data["_links"]["self"] == {"href": path}
    assert "_links" not in user.get(f"{path}?fields=id").data


@pytest.mark.parametrize("route", ITEMS, ids=str)
def test_an_id_that_is_none_is_404(admin, ids, route):
    for wrong in ["0", "-1", "1.0", "x", "9223372036854775808", "9" * 40, "%00", "%D9%A2"]:
        answer = admin.get(route.path(id=wrong))
        assert (answer.status, answer.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize("route", READ, ids=str)
def test_head_is_get_without_a_body(reader, ids, route):
    path, caller = fill(route, ids), with_bearer_of(reader.user)
    got, head = caller.get(path), caller("HEAD", path)
    assert (head.status, head.body) == (200, None)
    ignored = {"Request-Id", "RateLimit"}
    if route.template.endswith("/archive"):
        # The first request is a line of the second archive.
        ignored.add("Content-Length")
    assert {n: v for n, v in head.headers.items() if n not in ignored} == {
        n: v for n, v in got.headers.items() if n not in ignored
    }


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_options_tells_the_methods(user, ids, route):
    options = user("OPTIONS", fill(route, ids))
    allowed = set(options.headers["Allow"].split(", "))
    assert allowed == {*route.methods, "OPTIONS"} | ({"HEAD"} if "GET" in route.methods else set())
    assert set(options.data["methods"]) == allowed


@pytest.mark.parametrize(("route", "method"), WITH_BODY, ids=str)
def test_hostile_bodies_are_refused_in_the_contracts_words(make_user, ids, route, method):
    admin = with_password(make_user("admin", password=PASSWORD))
    path = fill(route, ids)
    for raw, code in (
        (b"", "MALFORMED_JSON"),
        (b"[" * 2000 + b"]" * 2000, "MALFORMED_JSON"),
        (b'{"a":' * 2000 + b"1" + b"}" * 2000, "MALFORMED_JSON"),
        (b'{"a": 1, "a": 2}', "MALFORMED_JSON"),
        (b'{"a": NaN}', "MALFORMED_JSON"),
        (b'{"a": "\xff"}', "MALFORMED_JSON"),
        (b"[]", "MALFORMED_JSON"),
        (b'{"a": "' + b"x" * 1024 * 1024 + b'"}', "PAYLOAD_TOO_LARGE"),
    ):
        if not raw and route.template in WITHOUT_FIELDS:
            continue
        answer = admin(method, path, raw=raw)
        assert answer.code == code, (raw[:40], answer)
    assert admin(method, path, raw=b"{}", Content_Type="text/plain").status == 415


# Pages for people: HTML, which no program calls and no schema describes.
PAGES = {"/admin", "/admin/", "/oauth/authorize", "/oauth/grants", "/session/login", "/session/logout"}
PAGES |= {"/session/account", "/session/reset", "/session/reset/<token>", "/session/verify/<token>"}


def is_page(path):
    return path in PAGES or path == "/docs" or path.startswith("/docs/")


@pytest.mark.parametrize("version", [1, 2])
def test_the_reference_has_every_endpoint_and_no_other(version):
    prefix = f"/api/v{version}"
    paths = Generator(api_version=str(version)).get_schema(public=True)["paths"]
    described = {path: {method.upper() for method in operations} for path, operations in paths.items()}
    below = {
        f"{prefix}/{route.template.replace('<', '{').replace('>', '}')}": route.methods - {"OPTIONS"}
        for route in ROUTES
    }
    beside = {path: own_methods(path) for path in root_only() if not is_page(path)}
    assert described == {prefix: {"GET"}, **below, **beside}
    assert set(root_only()) >= PAGES


def own_methods(path):
    view = resolve(path).func.view_class
    return {name.upper() for name in view.http_method_names if hasattr(view, name)} - {"HEAD", "OPTIONS"}
