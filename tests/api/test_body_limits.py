"""How long a body may be: what its endpoint can use, and no more work than that takes."""

import asyncio
from contextlib import suppress
from functools import partial

import pytest

from config.api.requests import find_max_body
from config.api.writing.idempotency import canonical
from config.http.errors import DomainError
from config.http.json import MAX_STRUCTURE, parse_json
from config.http.request_limits import MAX_SHORT_BODY
from config.server.requests import Bodies
from posts.models import Post
from tests.api.wire import compare_times
from tests.conftest import Caller
from tests.contract.routes import routes

KIBIBYTE = 1024
ESCAPED = r"\ud83d\ude00"


# --- The limit of an address


@pytest.mark.parametrize("route", list(routes()), ids=str)
def test_limit_is_16_kib_but_for_posts_and_comments(route) -> None:
    longer = {
        "POST users/<user_id>/posts": 256,
        "PUT posts/<id>": 256,
        "PATCH posts/<id>": 256,
        "POST posts/<post_id>/comments": 64,
        "PUT comments/<id>": 64,
        "PATCH comments/<id>": 64,
    }
    for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "BREW"):
        if method in route.methods or method not in {"POST", "PUT", "PATCH"}:
            for prefix in ("/api", "/api/v1", "/api/v2"):
                expected = longer.get(f"{method} {route.template}", 16)
                path = f"{prefix}/{route.template.replace('<', '').replace('>', '')}"
                assert find_max_body(method, path) == expected * KIBIBYTE, f"{method} {path}"


def test_pages_declare_theirs_and_others_have_the_ceiling() -> None:
    for path, limit in [
        *(("/oauth/token", 16), ("/oauth/revoke", 16), ("/oauth/introspect", 16), ("/oauth/authorize", 16)),
        *(("/oauth/grants", 16), ("/session/login", 16), ("/session/logout", 16)),
        # A file of users, and the same in base64 with the confirmation.
        *(("/admin/users/user/import/", 1024), ("/admin/login/", 1024)),
        *(("/nowhere", 1024), ("/users/", 1024), ("*", 1024)),
    ]:
        assert find_max_body("POST", path) == limit * KIBIBYTE
        assert find_max_body("GET", path) == MAX_SHORT_BODY


# --- Bodies


@pytest.mark.parametrize(
    ("path", "body", "limit"),
    [
        ("/orders", b'{"item": "a", "qty": 1, "ignored": "%s"}', 16),
        ("/users/{}/posts", b'{"title": "a", "ignored": "%s"}', 256),
        ("/posts/{}/comments", b'{"text": "a", "ignored": "%s"}', 64),
    ],
)
def test_body_passes_up_to_its_limit_and_a_byte_more_is_too_large(user: Caller, path, body, limit) -> None:
    limit *= KIBIBYTE
    path = path.format(Post.objects.create(user=user.user, title="a").pk if "comments" in path else user.user.pk)
    longest = body % (b"x" * (limit - len(body % b"")))
    assert len(longest) == limit
    assert user("POST", path, raw=longest).status == 201
    answer = user("POST", path, raw=longest + b" ")
    assert (answer.status, answer.code) == (413, "PAYLOAD_TOO_LARGE")
    assert answer.error["message"] == f"The body is longer than {limit} bytes."


def test_longest_texts_fit_with_every_character_escaped(user: Caller) -> None:
    post = f'{{"title": "{ESCAPED * 200}", "body": "{ESCAPED * 20_000}"}}'.encode()
    answer = user("POST", f"/users/{user.user.pk}/posts", raw=post)
    assert answer.status == 201
    path = f"/posts/{answer.data['id']}"
    assert user("PUT", path, raw=post).data["body"] == "\U0001f600" * 20_000
    comment = f'{{"text": "{ESCAPED * 5_000}"}}'.encode()
    assert user("POST", f"{path}/comments", raw=comment).data["text"] == "\U0001f600" * 5_000


# --- What a body costs


def fill(value, size, *, opening=b'{"x": [', closing=b"]}"):
    """A body of a size, which holds as many values as fit into it. Each is `value` of its number."""
    values, room = [], size - len(opening) - len(closing)
    while room >= len(made := value(len(values))) + 1:
        values.append(made)
        room -= len(made) + 1
    return opening + b",".join(values) + closing


COSTLY = {
    "equal decimals": fill(lambda _: b"0.1", MAX_STRUCTURE),
    "decimals": fill(lambda index: b"0.%d" % (index + 1), MAX_STRUCTURE),
    "exponents": fill(lambda index: b"%de%d" % (index % 999 + 1, index % 20), MAX_STRUCTURE),
    "exponents out of range": fill(lambda index: b"1e%d" % (index + 21), MAX_STRUCTURE),
    "exponents of no Decimal": fill(lambda index: b"1e%d" % (10**18 + index), MAX_STRUCTURE),
    "integers": fill(lambda _: b"1", MAX_STRUCTURE),
    "long integers": fill(lambda index: b"9" * 50 + b"%d" % index, MAX_STRUCTURE),
    "one long number": fill(lambda _: b"9" * (MAX_STRUCTURE - 12), MAX_STRUCTURE),
    # Python's hash of a number is its remainder by this prime, which anybody can reckon with.
    "decimals of one hash": fill(lambda index: b"%d.0" % ((index + 1) * (2**61 - 1)), MAX_STRUCTURE),
    "members": fill(lambda index: b'"%x":1' % index, MAX_STRUCTURE, opening=b"{", closing=b"}"),
    "members of one name": fill(lambda _: b'"a":1', MAX_STRUCTURE, opening=b"{", closing=b"}"),
    "objects": fill(lambda _: b'{"":1}', MAX_STRUCTURE),
    "empty objects": fill(lambda _: b"{}", MAX_STRUCTURE),
    "nested lists": fill(lambda _: b"[" * 30 + b"]" * 30, MAX_STRUCTURE),
    "nested objects": fill(lambda _: b'{"":' * 30 + b"1" + b"}" * 30, MAX_STRUCTURE),
    "lists without end": b'{"x":' + b"[" * (MAX_STRUCTURE - 5),
    "escaped text": b'{"x":"' + rb"\ud83d\ude00" * 21_000 + b'"}',
    "text": '{{"x":"{}"}}'.format("\U0001f600" * 65_000).encode(),
    "line breaks": b'{"x":"' + rb"\n" * 130_000 + b'"}',
    "long names": fill(lambda index: b'"%090d":1' % index, 256 * 1024, opening=b"{", closing=b"}"),
    "decimals beyond the limit": fill(lambda _: b"0.1", 256 * 1024),
    "strings beyond the limit": fill(lambda _: b'""', 256 * 1024),
}


HONEST = fill(lambda index: b'{"amount":%d.50}' % index, MAX_STRUCTURE)


@pytest.mark.parametrize("body", COSTLY.values(), ids=COSTLY)
def test_body_at_its_limit_costs_little_more_than_an_honest_one(body: bytes) -> None:
    def read(body: bytes) -> None:
        with suppress(DomainError):
            canonical(parse_json(body))

    # Up to three; without the limits sixty.
    assert compare_times(partial(read, body), partial(read, HONEST)) < 5


def test_body_in_very_many_pieces_is_refused() -> None:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b" ", "more_body": True}

    with pytest.raises(DomainError, match="more than 16384 pieces") as refused:
        asyncio.run(Bodies().receive({}, receive, 256 * KIBIBYTE))
    assert refused.value.code == "PAYLOAD_TOO_LARGE"


@pytest.mark.parametrize("prefix", ["", "/api", "/api/v2"])
def test_lines_may_have_a_mebibyte_where_they_are_taken(prefix: str) -> None:
    for path in ("/users", "/orders", "/users/1/posts"):
        assert find_max_body("POST", prefix + path, "Application/X-NDJSON") == 1024 * KIBIBYTE
        assert find_max_body("POST", prefix + path, "application/json") < 1024 * KIBIBYTE
    for method, path in (("POST", "/payments"), ("PATCH", "/users/1"), ("POST", "/api-keys")):
        assert find_max_body(method, prefix + path, "application/x-ndjson") == 16 * KIBIBYTE
