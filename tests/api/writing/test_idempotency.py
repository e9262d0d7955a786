"""Contract section 7: a retry gets the answer of the first request, and nothing happens twice."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from config.api.writing import idempotency
from config.models import IdempotencyRecord
from orders.models import Order
from payments.models import Payment
from posts.models import Comment, Post
from tests.conftest import PASSWORD, with_key, with_password

PAYMENT = b'{"amount": 12.30}'
HONOURING = ["/payments", "/orders", "/users/{user}/posts", "/posts/{post}/comments"]
BODIES = {
    "/payments": {"amount": 5},
    "/orders": {"item": "Tea", "qty": 1},
    "/users/{user}/posts": {"title": "Hello"},
    "/posts/{post}/comments": {"text": "Welcome"},
}
ROWS = {
    "/payments": Payment,
    "/orders": Order,
    "/users/{user}/posts": Post,
    "/posts/{post}/comments": Comment,
}


@pytest.fixture
def address(other, user):
    post = Post.objects.create(user=other.user, title="T")
    return lambda path: path.format(user=user.user.pk, post=post.pk)


def pay(caller, body=PAYMENT, path="/payments", **headers):
    return caller("POST", path, raw=body, **{"idempotency_key": "k", **headers})


def same(first, again):
    """Whether an answer is the stored one, byte for byte."""
    return (again.status, again.response.content, again.headers["Location"], again.headers["Content-Type"]) == (
        first.status,
        first.response.content,
        first.headers["Location"],
        first.headers["Content-Type"],
    ) and again.headers.get("Idempotent-Replayed") == "true"


# --- Where a key is required, honoured, refused, ignored


def test_payment_needs_a_key(user):
    refused = user.post("/payments", {"amount": 5})
    assert (refused.status, refused.code) == (400, "IDEMPOTENCY_KEY_REQUIRED")
    assert refused.fields == {"Idempotency-Key"}
    assert not Payment.objects.exists()


@pytest.mark.parametrize("path", [path for path in HONOURING if path != "/payments"])
def test_elsewhere_a_key_is_optional_and_each_request_creates(user, address, path):
    before = ROWS[path].objects.count()
    for _ in range(2):
        created = user.post(address(path), BODIES[path])
        assert (created.status, created.headers.get("Idempotent-Replayed")) == (201, None)
    assert ROWS[path].objects.count() == before + 2
    assert not IdempotencyRecord.objects.exists()


@pytest.mark.parametrize("path", HONOURING)
@pytest.mark.parametrize("query", ["", "?envelope=false", "?fields=id"])
def test_retry_gets_the_first_answer_byte_for_byte_and_creates_nothing(user, address, path, query):
    first = user.post(address(path) + query, BODIES[path], idempotency_key="k")
    assert (first.status, first.headers.get("Idempotent-Replayed")) == (201, None)
    count = ROWS[path].objects.count()
    for _ in range(2):
        again = user.post(address(path) + query, BODIES[path], idempotency_key="k")
        assert same(first, again)
        assert again.headers["Request-Id"] != first.headers["Request-Id"]
        for name in ("API-Version", "Cache-Control", "Vary"):
            assert again.headers[name] == first.headers[name]
    assert ROWS[path].objects.count() == count


@pytest.mark.parametrize("key", ["k", "", "a,b", '"k"'])
def test_where_the_answer_is_a_secret_every_key_is_refused(make_user, key):
    caller = with_password(make_user(password=PASSWORD))
    own = caller.post("/api-keys", {"name": "own"}).data["id"]
    for path, body in (("/api-keys", {"name": "n"}), (f"/api-keys/{own}/rotations", {})):
        refused = caller.post(path, body, idempotency_key=key)
        assert (refused.status, refused.code) == (400, "IDEMPOTENCY_KEY_INVALID")
    assert caller.get("/api-keys").meta["total"] == 1
    assert not IdempotencyRecord.objects.exists()


def test_elsewhere_a_key_is_ignored_whatever_it_is(admin):
    ada = {"name": "Ada", "email": "ada@example.com"}
    assert admin.post("/users", ada, idempotency_key="k").status == 201
    again = admin.post("/users", ada, idempotency_key="k")
    assert (again.status, again.code) == (409, "CONFLICT")
    path = f"/users/{admin.user.pk}"
    assert admin.patch(path, {"name": "A"}, idempotency_key="").status == 200
    assert admin.patch(path, {"name": "B"}, idempotency_key="a,b").data["name"] == "B"
    assert admin.get("/payments", idempotency_key=";").status == 200
    assert not IdempotencyRecord.objects.exists()


# --- Whose key it is, and for what


def test_key_belongs_to_the_user(user, other):
    assert pay(user).headers["Location"] != pay(other).headers["Location"]
    assert Payment.objects.count() == 2


def test_key_is_the_users_whatever_the_credential(user):
    assert same(pay(user), pay(with_key(user.user)))


def test_key_belongs_to_the_operation(user, address):
    first, second = (Post.objects.create(user=user.user, title="T") for _ in range(2))
    for path in (f"/posts/{first.pk}/comments", f"/posts/{second.pk}/comments", "/orders", "/payments"):
        body = {"text": "x", "item": "x", "qty": 1, "amount": 1}
        created = user.post(path, body, idempotency_key="k")
        assert (created.status, created.headers.get("Idempotent-Replayed")) == (201, None), path


def test_prefix_is_no_part_of_the_operation(user):
    first = pay(user, path="/api/v1/payments")
    assert first.headers["Location"].startswith("/api/v1/payments/")
    for path in ("/api/payments", "/payments", "/api/v1/payments"):
        assert same(first, pay(user, path=path))


# --- The fingerprint


def test_malformed_body_has_no_fingerprint_and_is_told_first(user):
    assert pay(user).status == 201
    for headers in ({}, {"idempotency_key": "new"}, {"idempotency_key": ""}):
        refused = pay(user, b'{"amount": 1', **headers)
        assert (refused.status, refused.code) == (400, "MALFORMED_JSON")


def test_record_holds_no_part_of_the_request_but_its_keyed_digest(user):
    pay(user, b'{"amount": 1, "x": "a secret of mine"}')
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(r)::text, fingerprint FROM config_idempotencyrecord r")
        row, fingerprint = cursor.fetchone()
    assert "a secret of mine" not in row
    assert len(fingerprint) == 32


def test_key_of_another_version_is_not_repeated(user):
    order = {"item": "Tea", "qty": 1}
    assert user.post("/api/v1/orders", order, idempotency_key="k").status == 201
    answer = user.post("/api/v2/orders", order, idempotency_key="k")
    assert (answer.status, answer.code) == (422, "IDEMPOTENCY_KEY_REUSED")


# --- What a retry asks to see does not matter: it gets what was stored


@pytest.mark.parametrize("query", ["?envelope=false", "?fields=id"])
def test_retry_that_asks_for_another_form_gets_what_was_stored(user, query):
    assert same(pay(user), pay(user, path=f"/payments{query}"))
    first = pay(user, path=f"/payments{query}", idempotency_key="other")
    assert same(first, pay(user, idempotency_key="other"))


def test_page_of_the_browsable_api_is_stored_as_its_json(user):
    page = Client().post(
        "/api/v1/payments",
        PAYMENT,
        "application/json",
        headers={**user.headers, "Idempotency-Key": "k", "Accept": "text/html"},
    )
    assert (page.status_code, page.headers["Content-Type"]) == (201, "text/html; charset=utf-8")
    shown = user.fetch("POST", "/api/v1/payments", raw=PAYMENT, idempotency_key="k", accept="text/html")
    assert (shown.headers["Content-Type"], shown.headers["Idempotent-Replayed"]) == ("text/html; charset=utf-8", "true")
    for accept in ("application/json", "application/problem+json"):
        again = pay(user, path="/api/v1/payments", accept=accept)
        assert again.headers["Content-Type"] == "application/json"
        assert again.headers["Location"] == page.headers["Location"]
        assert again.data == user.get(again.headers["Location"]).data
    assert Payment.objects.count() == 1


# --- What is stored, and what is asked before


def test_after_an_error_a_corrected_retry_runs(user):
    for body, status in (({}, 400), ({"amount": 0}, 400), ({"amount": 1, "user_id": 999}, 403), ({"amount": 1}, 201)):
        assert user.post("/payments", body, idempotency_key="k").status == status
    assert user.post("/payments", {"amount": 1}, idempotency_key="k").status == 201
    assert Payment.objects.count() == 1


def test_credential_and_scope_are_asked_before_the_store(user, nobody):
    assert pay(user).status == 201
    assert pay(nobody).code == "UNAUTHENTICATED"
    assert pay(with_key(user.user, {"payments:read"})).code == "INSUFFICIENT_SCOPE"
    assert pay(user, path="/payments?fields=none").code == "VALIDATION_ERROR"


def test_seen_key_of_a_caller_over_its_quota_is_429_and_not_replayed(user, settings, one_minute):
    settings.RATE_LIMIT_PRINCIPAL = 1
    first, refused = pay(user), pay(user)
    assert (first.status, refused.status, refused.code) == (201, 429, "RATE_LIMITED")
    assert "Idempotent-Replayed" not in refused.headers
    settings.RATE_LIMIT_PRINCIPAL = 3
    assert same(first, pay(user))


def test_key_is_asked_for_before_the_fields(user):
    assert user.post("/payments", {"amount": "wrong"}).code == "IDEMPOTENCY_KEY_REQUIRED"


def test_retry_is_told_what_it_did_although_the_parent_is_gone(user, other):
    post = Post.objects.create(user=other.user, title="T")
    first = user.post(f"/posts/{post.pk}/comments", {"text": "x"}, idempotency_key="k")
    assert other.delete(f"/posts/{post.pk}").status == 204
    assert same(first, user.post(f"/posts/{post.pk}/comments", {"text": "x"}, idempotency_key="k"))
    assert user.post(f"/posts/{post.pk}/comments", {"text": "x"}, idempotency_key="new").status == 404


def test_write_that_fails_after_its_effect_leaves_neither(user, monkeypatch):
    def fail(self, *args, **options):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(idempotency, "to_json", fail)
        assert pay(user).code == "INTERNAL_ERROR"
    assert (Payment.objects.count(), IdempotencyRecord.objects.count()) == (0, 0)
    assert pay(user).status == 201


@pytest.mark.parametrize("query", ["", "?fields=id"])
def test_answer_that_shows_the_row_of_a_removed_user_goes_with_it(user, admin, other, query):
    paths = {
        f"/users/{user.user.pk}/posts": {"title": "Of Uma"},
        "/payments": {"amount": 5, "user_id": user.user.pk},
        "/orders": {"item": "Tea", "qty": 1, "user_id": user.user.pk},
    }
    for path, body in paths.items():
        assert admin.post(path + query, body, idempotency_key="k").status == 201
    stays = admin.post("/payments", {"amount": 5, "user_id": other.user.pk}, idempotency_key="other")
    own = admin.post("/payments", {"amount": 5}, idempotency_key="own")
    assert admin.delete(f"/users/{user.user.pk}").status == 204
    for path, body in paths.items():
        again = admin.post(path + query, body, idempotency_key="k")
        assert again.code == ("NOT_FOUND" if path.endswith("posts") else "VALIDATION_ERROR")
    assert same(stays, admin.post("/payments", {"amount": 5, "user_id": other.user.pk}, idempotency_key="other"))
    assert same(own, admin.post("/payments", {"amount": 5}, idempotency_key="own"))
    assert (Payment.objects.count(), Order.objects.count()) == (3, 1)


# --- Another request with the key is running


def lock_of(caller, operation, key):
    return idempotency.IdempotencyKey(caller.user.pk, operation, key, b"").lock_number


def test_key_whose_request_is_running_is_409_at_once(user, elsewhere):
    elsewhere.execute("SELECT pg_advisory_xact_lock(%s)", [lock_of(user, "POST /payments", "k")])
    refused = pay(user)
    assert (refused.status, refused.code, refused.headers["Retry-After"]) == (409, "IDEMPOTENCY_IN_PROGRESS", "1")
    assert pay(user, idempotency_key="other").status == 201
    elsewhere.rollback()
    assert pay(user).status == 201


def test_retries_at_once_need_not_wait_for_each_other(user, elsewhere):
    first = pay(user)
    elsewhere.execute("SELECT pg_advisory_xact_lock(%s)", [lock_of(user, "POST /payments", "k")])
    assert same(first, pay(user))


# --- Retention, and what administrators see


def test_records_past_retention_are_those_older_than_the_setting(user, settings):
    pay(user)
    record = IdempotencyRecord.objects.get()
    for age, past in (({"days": 29, "hours": 23}, False), ({"days": 30, "seconds": 1}, True)):
        IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(**age))
        assert (list(IdempotencyRecord.objects.expired(timezone.now())) == [record]) is past
    settings.IDEMPOTENCY_RETENTION_DAYS = 31
    assert not IdempotencyRecord.objects.expired(timezone.now())


def test_administrator_finds_a_payment_by_key_with_the_answer(user, make_user):
    first = pay(user, idempotency_key="invoice-4711")
    pay(user, idempotency_key="invoice-4711x")
    browser = Client()
    browser.force_login(make_user("admin"))
    found = browser.get("/admin/config/idempotencyrecord/?q=invoice-4711").context["cl"].result_list
    assert [record.key for record in found] == ["invoice-4711"]
    (record,) = found
    assert record.location == first.headers["Location"]
    page = browser.get(f"/admin/config/idempotencyrecord/{record.pk}/change/")
    assert json.loads(record.body)["data"]["id"] == first.data["id"]
    assert "&quot;amount&quot;:12.30" in page.content.decode()
    assert "ingerprint" not in page.content.decode()
    for action in ("add/", f"{record.pk}/delete/"):
        assert browser.get(f"/admin/config/idempotencyrecord/{action}").status_code == 403


# --- The document


def test_schema_declares_the_header_where_it_means_something(nobody):
    document = nobody.get("/openapi.json").body
    paths, known = document["paths"], document["components"]["parameters"]
    declared = {
        (path, method): known[name]["required"]
        for path, operations in paths.items()
        for method, operation in operations.items()
        for parameter in operation["parameters"]
        if (name := parameter.get("$ref", "").rpartition("/")[2]).startswith("Idempotency-Key")
    }
    assert declared == {
        ("/api/v1/payments", "post"): True,
        ("/api/v1/orders", "post"): False,
        ("/api/v1/users/{user_id}/posts", "post"): False,
        ("/api/v1/posts/{post_id}/comments", "post"): False,
    }
    created = paths["/api/v1/payments"]["post"]["responses"]["201"]
    assert "Idempotent-Replayed" in created["headers"]
