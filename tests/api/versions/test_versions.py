"""What differs between the versions, one test for each change, and how a version ends."""

import json
import re
from datetime import UTC, datetime

import pytest
import time_machine
from django.core.checks import run_checks
from django.test import override_settings

from config.api.versions.table import Change
from tests.api.wire import quickly
from tests.conftest import Caller, with_bearer_of
from tests.contract.routes import root_only


def test_the_versions_are_listed_with_their_dates_and_changes(nobody):
    answer = nobody.get("/versions")
    assert answer.status == 200
    first, second = answer.data
    assert first == {
        "version": 1,
        "status": "deprecated",
        "released": "2026-12-01",
        "deprecated": "2026-12-01",
        "sunset": "2028-12-01",
        "changes": [],
    }
    assert (second["version"], second["status"], second["deprecated"], second["sunset"]) == (2, "current", None, None)
    assert second["changes"] == [change.text for change in Change]
    assert nobody.get("/api/v2/versions").data == answer.data
    assert nobody.get("/versions?envelope=false").body == answer.data


@pytest.mark.parametrize("query", ["", "?limit=1", "?sort=name&order=desc", "?role=user"])
def test_a_list_is_paged_by_cursor_unless_a_page_is_asked_for(admin, user, query):
    assert set(admin.get(f"/api/v1/users{query}").meta) == {"page", "limit", "total", "totalPages"}
    answer = admin.get(f"/api/v2/users{query}")
    assert set(answer.meta) == {"nextCursor", "prevCursor", "hasMore"}
    assert "last" not in answer.body["_links"]
    other = "&" if query else "?"
    for asked in ("page=1", "offset=0"):
        assert admin.get(f"/api/v2/users{query}{other}{asked}").meta["page"] == 1


def test_what_is_not_a_number_is_the_default_at_first_and_refused_later(admin):
    for name in ["page", "offset", "limit"]:
        for value in ["abc", "", "٢", "1x", "0x10", "NaN"]:
            assert admin.get(f"/api/v1/users?{name}={value}").meta["limit"] == 20
            answer = admin.get(f"/api/v2/users?{name}={value}")
            assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {name})


def test_unknown_parameters_are_ignored_at_first_and_refused_later(admin):
    for path in ("/users", "/users/1", "/protected", "/versions", "/"):
        v1 = admin.get(f"/api/v1{path.rstrip('/')}?colour=red&version=1")
        assert v1.status in {200, 404}
        v2 = admin.get(f"/api/v2{path.rstrip('/')}?colour=red&version=2&size=1")
        assert (v2.status, v2.code, v2.fields) == (400, "VALIDATION_ERROR", {"colour", "size"}), path
    assert admin("OPTIONS", "/api/v2/users?page=1&colour=red").status == 200
    assert admin.post("/api/v2/orders?page=1", {"item": "Tea", "qty": 1}).fields == {"page"}


@pytest.mark.parametrize(
    ("path", "body", "wrong"),
    [
        ("/orders", {"item": "Tea", "qty": 1, "colour": "red"}, {"colour"}),
        ("/orders", {"item": "", "qty": 1, "colour": "red", "id": 5}, {"item", "colour", "id"}),
        ("/orders", {"item": "Tea", "qty": 1, "created_at": None}, {"created_at"}),
        ("/orders", {"item": "Tea", "qty": 1, "_links": {"self": 1}}, set()),
        ("/users", {"name": "N", "email": "n@example.com", "is_staff": True}, {"is_staff"}),
        ("/login", {"email": "n@example.com", "password": "wrong", "otp": "1"}, {"otp"}),
        ("/token/refresh", {"refresh_token": "none", "scope": "users:read"}, {"scope"}),
        ("/api-keys", {"name": "Robot", "prefix": "abc"}, {"prefix"}),
    ],
)
def test_unknown_and_read_only_fields_are_ignored_at_first_and_refused_later(make_user, path, body, wrong):
    admin = with_bearer_of(make_user("admin"))
    caller = admin if path in {"/orders", "/users", "/api-keys"} else Caller()
    answer = caller.post(f"/api/v2{path}", body)
    assert answer.fields == wrong if wrong else answer.status == 201
    lenient = caller.post(f"/api/v1{path}", body)
    assert lenient.status in {201, 401} or lenient.fields == {"item"}


@pytest.fixture
def post(user):
    return user.post(f"/api/v1/users/{user.user.pk}/posts", {"title": "A title"}).data["id"]


def test_what_was_read_can_be_put_back(admin, user, post):
    comment = user.post(f"/api/v1/posts/{post}/comments", {"text": "A comment"}).data["id"]
    for path in (f"/users/{user.user.pk}", f"/posts/{post}", f"/comments/{comment}"):
        read = admin.get(f"/api/v2{path}").data
        assert "_links" in read
        assert admin.put(f"/api/v2{path}", read).status == 200
        read = admin.get(f"/api/v2{path}").data
        changed = {**read, "id": read["id"] + 1, "created_at": "2020-01-01T00:00:00Z"}
        assert admin.put(f"/api/v2{path}", changed).fields == {"id", "created_at"}
        assert admin.patch(f"/api/v2{path}", {"id": True}).fields == {"id"}
        assert admin.patch(f"/api/v2{path}", {"updated_at": read["updated_at"]}).status == 200
        assert admin.put(f"/api/v1{path}", changed).status == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_post_of_a_list_put_back_is_told_that_a_list_shows_some_comments_only(user, post, method):
    path = f"/api/v2/posts/{post}"
    for text in "abc":
        user.post(f"{path}/comments", {"text": text})
    listed = user.get("/api/v2/posts").data[0]
    assert user(method, path, listed).status == 200
    user.post(f"{path}/comments", {"text": "d"})
    listed = user.get("/api/v2/posts").data[0]
    refused = user(method, path, listed)
    assert (refused.status, refused.fields) == (400, {"comments"})
    assert refused.error["details"][0]["message"] == (
        "Read-only, and the value differs from the current one. Omit this field. Lists show the first 3 comments of a "
        "post. To send a post back, fetch it by its id: that shows 20."
    )
    assert user(method, path, {**listed, "id": 0}).error["details"][0]["message"] == (
        "Read-only, and the value differs from the current one. Omit this field."
    )
    new = user.post(f"/api/v2/users/{user.user.pk}/posts", {"title": "A title", "id": 1})
    assert new.error["details"][0]["message"] == "Read-only. Omit this field."


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("12.3", "12.30"),
        ('"12.30"', "12.30"),
        ('"12.3"', "12.30"),
        ('"12"', "12.00"),
        ('"0012.50"', "12.50"),
        ("1e2", "100.00"),
        ('"9999999999.99"', "9999999999.99"),
        ('"0.01"', "0.01"),
    ],
)
def test_money_is_text_later(user, raw, shown):
    body = b'{"amount": %s}' % raw.encode()
    made = user("POST", "/api/v2/payments", raw=body, Idempotency_Key="one")
    assert made.status == 201, made
    assert made.data["amount"] == shown
    assert user.get(f"/api/v2/payments/{made.data['id']}").data["amount"] == shown
    assert user.get("/api/v2/payments").data[0]["amount"] == shown
    first = user.get(f"/api/v1/payments/{made.data['id']}").response.content
    assert f'"amount":{shown}'.encode() in first


def test_text_that_is_no_plain_amount_is_refused(user):
    for raw in [
        '"1e2"',
        '"+1"',
        '"-1.00"',
        '" 1"',
        '"1."',
        '".5"',
        '"1.001"',
        '"١"',
        '"1,00"',
        '""',
        '"0.00"',
        '"10000000000.00"',
        f'"{"9" * 60}"',
        "true",
        "null",
    ]:
        for version in (1, 2):
            answer = user(
                "POST", f"/api/v{version}/payments", raw=b'{"amount": %s}' % raw.encode(), Idempotency_Key="one"
            )
            assert (answer.status, answer.fields) == (400, {"amount"}), answer


def test_the_schemas_differ_as_the_versions_do(nobody):
    first, second = (nobody.get(f"/openapi.json?version={version}").body for version in (1, 2))
    amount = "/api/v{}/payments/{{id}}"
    operations = [schema["paths"][amount.format(number)]["get"] for number, schema in ((1, first), (2, second))]
    assert [operation.get("deprecated", False) for operation in operations] == [True, False]
    kinds = [schema["components"]["schemas"]["Payment"]["properties"]["amount"]["type"] for schema in (first, second)]
    assert kinds == ["number", "string"]
    assert nobody.get("/openapi.json?version=9").code == "UNSUPPORTED_VERSION"


def http_links(answer):
    return {rel: href for href, rel in re.findall(r'<([^>]*)>; rel="([^"]*)"', answer.headers.get("Link", ""))}


DAY_BEFORE = datetime(2028, 11, 30, 23, 59, 59, tzinfo=UTC)
SUNSET = datetime(2028, 12, 1, tzinfo=UTC)


def test_a_version_is_answered_until_its_sunset_and_not_from_then_on(nobody):
    with time_machine.travel(DAY_BEFORE, tick=False):
        assert nobody.get("/api/v1").status == 200
    with time_machine.travel(SUNSET, tick=False):
        for path, headers in (
            ("/api/v1/users", {}),
            ("/users?version=1", {}),
            ("/users", {}),
            ("/api/users", {"Accept": "application/vnd.users.v1+json"}),
        ):
            answer = nobody.get(path, **headers)
            assert (answer.status, answer.code) == (410, "VERSION_RETIRED"), path
            assert answer.headers["API-Version"] == "1"
            assert answer.headers["Sunset"] == "Fri, 01 Dec 2028 00:00:00 GMT"
            assert '</api/v2/users>; rel="successor-version"' in answer.headers["Link"]
        # No resource that was retired.
        assert [nobody.get(path).status for path in ("/api/v1/nothing", "/api/v1/users/")] == [404, 308]
        assert nobody.get("/api/v2/users").status == 401
        assert [one["status"] for one in nobody.get("/api/v2/versions").data] == ["retired", "current"]
        assert nobody.post("/api/v1/login", {}).code == "VERSION_RETIRED"
        assert "Supported: 2" in nobody.get("/api/v9/users").error["message"]
        page = http_links(nobody.get("/users"))["sunset"]
        assert nobody.fetch("GET", page).status_code == 200


def test_the_successor_is_the_same_resource_with_its_query(admin):
    link = admin.get("/users?version=1&sort=name&limit=2").headers["Link"]
    assert '</api/v2/users?sort=name&limit=2>; rel="successor-version"' in link
    assert "</api/v2>" in admin.get("/").headers["Link"]
    assert '</api/v2/users/%3E%22;x>; rel="successor-version"' in admin.get("/users/%3E%22;x").headers["Link"]
    assert "version" not in http_links(admin.get("/users?%76ersion=1"))["successor-version"].partition("/users")[2]
    assert "</api/v2/users?q=%C3%A9>" in admin.get("/api/v1/users?q=é").headers["Link"]
    key = admin.headers["X-API-Key"]
    assert key not in Caller().get(f"/users?api_key={key}").headers["Link"]


def test_what_no_view_answers_tells_the_version_too(nobody):
    for method, path, status in [
        ("GET", "/api/nothing", 404),
        ("GET", "/api/v2/nothing", 404),
        ("GET", "/api/v2/nothing?version=2", 404),
        ("GET", "/api/v1/users/", 308),
        ("GET", "/users/", 308),
        ("POST", "/api/v2/users/7/", 308),
    ]:
        answer = nobody(method, path)
        assert answer.status == status
        assert answer.headers["API-Version"] == ("2" if "v2" in path else "1")
        assert "Accept" in answer.headers["Vary"]
        assert ("Deprecation" in answer.headers) == ("v2" not in path)


@pytest.mark.parametrize("path", [*root_only(), "/admin/login/", "/favicon.ico", "/static/accounts/page.css"])
def test_what_stands_at_the_root_only_has_no_version(client, db, path):
    response = client.head(path)
    assert not {"API-Version", "Deprecation", "Sunset"} & set(response.headers)
    assert not {"deprecation", "sunset", "successor-version"} & set(http_links(response))


@pytest.mark.parametrize(("day", "warned"), [("2028-09-01", False), ("2028-09-02", True), ("2029-01-01", True)])
def test_the_checks_warn_before_the_default_version_ends(day, warned):
    with time_machine.travel(f"{day}T12:00:00Z", tick=False):
        assert ("config.W001" in {message.id for message in run_checks()}) == warned
        with override_settings(DEFAULT_API_VERSION=2):
            assert "config.W001" not in {message.id for message in run_checks()}


def test_the_operator_moves_the_default(admin):
    with override_settings(DEFAULT_API_VERSION=2):
        answer = admin.get("/users")
    assert answer.headers["API-Version"] == "2"
    assert "Deprecation" not in answer.headers
    assert "nextCursor" in answer.meta


def test_body_of_very_many_unknown_names_is_refused_at_once_and_briefly(nobody):
    body = {"email": "n@example.com", "password": "x", **dict.fromkeys(map(str, range(1_400)), 1)}
    with quickly(0.8):
        answer = nobody.post("/api/v2/login", body)
    assert answer.status == 400
    assert len(answer.error["details"]) == 100


def test_links_of_a_page_repeat_a_query_without_making_it_longer(admin):
    query = "limit=1&page=1&q=" + "(" * 2000
    assert len(admin.get(f"/api/v1/users?{query}").headers["Link"]) < 8 * len(query)


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_answer_about_an_unknown_version_gives_no_notice_of_another(nobody, accept):
    for method, path, status in [
        ("GET", "/api/v9/users", 404),
        ("POST", "/api/v9/orders", 404),
        ("OPTIONS", "/api/v9/users", 404),
        ("GET", "/api/v9/nowhere", 404),
        ("GET", "/api/v9/users/", 308),
        ("GET", "/api/v9", 404),
        ("GET", "/users?version=9", 400),
        ("GET", "/api/v2/users?version=9", 400),
        ("GET", "/api/v1/users?version=9", 400),
        ("GET", "/api/v9/users?" + "&".join(["a=1"] * 1100), 400),
    ]:
        response = nobody.fetch(method, path, accept=accept)
        assert (response.status_code, response.headers["API-Version"]) == (status, "1")
        assert not {"Deprecation", "Sunset"} & set(response.headers)
        assert set(http_links(response)) <= {"help"}
        with override_settings(DEFAULT_API_VERSION=2):
            assert nobody.fetch(method, path, accept=accept).headers["API-Version"] == "2"


CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def test_person_who_names_no_version_gets_the_newest_and_a_program_the_default(admin):
    for path in ["/users", "/api/users", "/versions", "/api"]:
        for accept, version in [
            (CHROMIUM, "2"),
            ("*/*", "1"),
            ("application/json", "1"),
            ("application/json, text/html", "1"),
            ("text/html;q=0.9, application/vnd.users.v1+json;q=0.8", "2"),
            ("application/vnd.users.v1+json, text/html", "1"),
            ('application/json;version=2, text/x; n="\xfc"', "2"),
            ('text/\xfc; n="\xc3\xbc", application/json;version=2;x=\xfc', "2"),
        ]:
            assert admin.fetch("GET", path, Accept=accept)["API-Version"] == version


@pytest.mark.parametrize("path", ["/users?version=1", "/api/v1/users"])
def test_person_who_names_a_version_gets_that(admin, path):
    assert admin.fetch("GET", path, Accept=CHROMIUM)["API-Version"] == "1"


@pytest.mark.parametrize(("accept", "version"), [(CHROMIUM, "2"), ("*/*", "1")])
def test_document_in_a_browser_is_that_of_the_newest_version(admin, accept, version):
    assert json.loads(admin.fetch("GET", "/openapi.json", Accept=accept).content)["info"]["version"] == version
