"""API keys as credentials."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from accounts.models import APIKey
from accounts.services import create_api_key
from config.api.versions.usage import uses
from tests.accounts.conftest import log_in, refresh
from tests.accounts.oauth.actors import bearer
from tests.conftest import PASSWORD, Caller


@pytest.fixture
def key(owner):
    return create_api_key(owner, name="test")[1]


def row(key):
    return APIKey.objects.filter(prefix=key[:12])


def test_unknown_scheme_is_refused_whatever_its_parameters_look_like(db, key):
    for authorization in [
        'Digest username="ada", realm="x, Basic y", nonce="a\\", Bearer b", qop=auth, nc=00000001, response="0"',
        "AWS4-HMAC-SHA256 Credential=AK/20261201/eu/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=fe5f27",
        'OAuth oauth_consumer_key="k",oauth_token="t" , oauth_signature="s"',
        'Signature keyId="k", algorithm="rsa", signature = "x, y"',
        'Digest username="not closed, Bearer none',
        *(
            "Digest x",
            "Custom one, two",
            "Custom ,,,",
            "Custom a, b c",
            "Digest",
            'Custom a="\\',
            '"a", "b"',
        ),
    ]:
        answer = Caller(headers={"Authorization": authorization}).get("/users")
        assert (answer.status, answer.code) == (401, "INVALID_TOKEN")
        both = Caller(headers={"Authorization": authorization, "X-API-Key": key}).get("/users")
        assert (both.status, both.code) == (400, "CREDENTIAL_CONFLICT")


def test_two_credentials_of_one_header_are_a_conflict(db):
    for authorization in [
        *("Digest x, Basic eDp5", 'Digest a="b", c="d",Bearer none', "Digest a=b, Digest c=d", "Basic a, Digest b=c"),
        *("Bearer a, Digest b=c, d=e", 'Digest a="\\", b" , basic eDp5', "Bearer a,b"),
    ]:
        answer = Caller(headers={"Authorization": authorization}).get("/users")
        assert (answer.status, answer.code) == (400, "CREDENTIAL_CONFLICT")


@pytest.mark.parametrize("place", ["header", "query"])
def test_bad_key_is_refused_with_a_challenge(nobody, place):
    for bad in ["", "none", "urs_", "urs_" + "x" * 43, "x" * 5000, "%00", "%ED%A0%80", "%FF", "é"]:
        if place == "header":
            answer = Caller(headers={"X-API-Key": bad}).get("/users")
        else:
            answer = nobody.get(f"/users?api_key={bad}")
        assert (answer.status, answer.code) == (401, "INVALID_CREDENTIALS")
        assert answer.headers["WWW-Authenticate"]


END = {
    "expired": lambda owner, key: row(key).update(expires_at=timezone.now() - timedelta(seconds=1)),
    "revoked": lambda owner, key: row(key).update(revoked_at=timezone.now()),
    "gone": lambda owner, key: row(key).delete(),
}


@pytest.mark.parametrize("end", END.values(), ids=END)
def test_key_that_ended_is_refused_from_the_next_request_on(owner, key, end):
    caller = Caller(headers={"X-API-Key": key})
    row(key).update(expires_at=timezone.now() + timedelta(minutes=1))
    assert caller.get("/users").status == 200
    end(owner, key)
    for path in ("/users", "/api/protected", f"/users/{owner.pk}"):
        answer = caller.get(path)
        assert (answer.status, answer.code) == (401, "INVALID_CREDENTIALS"), path
        assert answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize("prefix", ["", "/api", "/api/v1"])
def test_key_never_appears_in_an_answer(owner, key, nobody, prefix):
    for number in range(3):
        created = nobody.post(f"{prefix}/orders?api_key={key}", {"item": f"Book {number}", "qty": 1})
        assert created.status == 201
    paths = ("/orders?limit=1&offset=1", "/orders?limit=1&page=2", "/orders?limit=1&cursor=", "/orders?fields=id")
    single = (f"/users/{owner.pk}?fields=id", f"/users/{owner.pk}?version=1", "/orders/0?fields=id", "/orders/?x=1")
    answers = [nobody.get(f"{prefix}{path}&api_key={key}") for path in (*paths, *single)]
    assert [answer.status for answer in answers[:6]] == [200] * 6
    for answer in (created, *answers):
        sent = answer.response.content.decode() + str(answer.headers)
        assert key not in sent
        assert "api_key" not in sent
    assert answers[0].body["_links"]["next"]["href"] == f"{prefix}/orders?limit=1&offset=2"


def test_only_a_digest_of_the_key_is_stored(key):
    values = row(key).values().get()
    assert key.startswith(values["prefix"])
    assert len(key) - len(values["prefix"]) > 32
    assert not any(key[12:] in str(value) for value in values.values())
    assert len(values["digest"]) == 32


def test_use_of_a_key_is_written_down_once_a_minute(key):
    def use():
        assert Caller(headers={"X-API-Key": key}).get("/users").status == 200
        uses.write()
        return row(key).get().last_used_at

    assert row(key).get().last_used_at is None
    first = use()
    assert first is not None
    assert use() == first
    row(key).update(last_used_at=first - timedelta(minutes=2))
    assert use() >= first


def test_use_of_a_key_that_is_being_changed_is_not_waited_for(transactional_db, owner, elsewhere):
    keys = [create_api_key(owner, name="test")[1] for _ in range(2)]
    for key in keys:
        assert Caller(headers={"X-API-Key": key}).get("/users").status == 200
    elsewhere.execute("SELECT * FROM accounts_apikey WHERE prefix = %s FOR UPDATE", [keys[0][:12]])
    uses.write()
    assert [row(key).get().last_used_at is None for key in keys] == [True, False]
    elsewhere.rollback()


@pytest.mark.parametrize("kind", ["key", "token"])
def test_read_goes_on_where_the_use_of_its_credential_cannot_be_written(transactional_db, owner, key, kind):
    caller = Caller(headers={"X-API-Key": key})
    if kind == "token":
        pair = refresh(log_in(owner.email, PASSWORD).data["refresh_token"]).data
        caller = bearer(pair["access_token"])
    refused = []

    def refuse(execute, sql, *arguments):
        if sql.lstrip().startswith("UPDATE"):
            refused.append(sql)
            raise OperationalError("All connections of the pool are in use.")
        return execute(sql, *arguments)

    with connection.execute_wrapper(refuse):
        assert caller.get("/users").status == 200
    assert len(refused) == (kind == "token")
