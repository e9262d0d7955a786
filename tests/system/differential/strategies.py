"""Queries, headers and bodies as clients send them, and as none should."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

Headers = Mapping[str, str]

# Takes the place of the entity tag that the address has.
TAG = "<tag>"
# Whether the media type that an Accept header leads to is JSON.
ACCEPT: Mapping[str, bool] = {
    "": True,
    "*/*": True,
    "application/*": True,
    "application/json": True,
    "application/json;q=nothing": True,
    'application/json; a="b, text/html"': True,
    "application/json, text/html;q=0.9": True,
    "application/problem+json": True,
    "application/json;q=0.5, application/problem+json": True,
    "application/vnd.users.v1+json": True,
    "application/vnd.users.v2+json": True,
    "application/vnd.users.v2+json;q=0.3, */*;q=0.1": True,
    "application/vnd.api+json;version=2": True,
    "application/json;version=2": True,
    "application/json;version=9": False,
    "application/json, application/problem+json": True,
    "application/vnd.users.v9+json": False,
    "application/json;q=0": False,
    "image/png": False,
    "application/x-ndjson": False,
    "text/csv, application/json;q=0.9": False,
    "text/html": False,
    "text/html;q=0.9, application/json;q=0.8": False,
}
_VALUES: Mapping[str, Sequence[str]] = {
    "page": ("1", "2", "3", "0", "-1", "1.0", "x", "", "%31", "+1", "1" * 40, "9" * 4301, "%D9%A1"),
    "limit": ("1", "2", "7", "100", "101", "0", "-5", "1e2", "x", "", "9" * 20),
    "offset": ("0", "1", "5", "23", "24", "99999999999999999999", "-1", "x"),
    "cursor": ("", "x", "%00", "%ED%A0%80", "AAAA", "AAAA=", "A" * 44),
    "sort": ("id", "created_at", "updated_at", "name", "item", "qty", "amount", "title", "-id", "", "%00", "pk", "ID"),
    "order": ("asc", "desc", "ASC", "", "x"),
    "fields": ("id", "id,created_at", "id,user_id", "id,id", "", ",", "nothing", "comments", "id%2Cname", "id,%00"),
    "envelope": ("true", "false", "False", "1", ""),
    "version": ("1", "2", "3", "", "x", "01"),
    "status": ("active", "inactive", "", "x", "%61ctive"),
    "role": ("user", "admin", "support", "", "USER", "user,admin", "user,"),
    "email": ("user@example.com", "USER@example.com", "user%40example.com", "", "%00", "x", "%C3%A9@example.com"),
    "id": ("1", "1001,1002,1003", "0", "1,", ""),
    "id[gt]": ("1000", "x"),
    "created_at[gte]": ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00+01:00", ""),
    "qty[lte]": ("3", "3.0"),
    "user_id": ("1001", "1001,1002,1003", "me"),
    "nothing": ("", "1"),
    "b%C3%A9": ("%C3%A9", "%FF", "é"),
    "api_keys": ("1",),
}
_PAIRS = st.sampled_from([f"{name}={value}" for name, values in _VALUES.items() for value in values])
# Those with which nothing is wrong by themselves, so that more of a request is looked at.
_GOOD_PAIRS = st.sampled_from(
    [
        *("page=1", "page=2", "limit=1", "limit=5", "offset=3", "cursor=", "sort=id", "sort=created_at", "order=asc"),
        *("order=desc", "fields=id", "fields=id,created_at", "envelope=false", "envelope=true"),
        *("version=1", "version=2"),
    ]
)
_STRANGE = st.sampled_from(["page", "=1", "&", "a=1;b=2", "page=1&&limit=2", "&page=1", "page=1&", "a=1&" * 51])
_NOISE = st.text(alphabet="abz01=&%+;._-~[],é\t\n\x00 ", max_size=20)

queries = st.one_of(
    st.lists(_GOOD_PAIRS, max_size=4, unique_by=lambda pair: pair.partition("=")[0]).map("&".join),
    st.lists(st.one_of(_GOOD_PAIRS, _PAIRS), max_size=4).map("&".join),
    st.one_of(_STRANGE, _NOISE),
)


def _optional(name: str, *values: str, one_in: int) -> st.SearchStrategy[Headers]:
    """A header that stands in one request of so many."""
    return st.sampled_from([{}] * ((one_in - 1) * len(values)) + [{name: value} for value in values])


def _merge(parts: Sequence[Headers]) -> Headers:
    return {name: value for part in parts for name, value in part.items()}


headers = st.tuples(
    _optional("Accept", *ACCEPT, one_in=3),
    _optional("Accept-Encoding", "gzip", "gzip;q=0", "identity", "*", "br", "gzip, br", "identity;q=0", one_in=3),
    _optional("If-None-Match", TAG, f"W/{TAG}", "*", '"x"', f'"x", {TAG}', "x", "", '"a" "b"', '"a, b"', one_in=3),
    _optional("If-Match", TAG, f"W/{TAG}", "*", '"x"', f'"x" , {TAG}', "x", "", "*, *", one_in=4),
    _optional("X-Request-Id", "mine", "a b", "x" * 129, "é", "", one_in=6),
    _optional("Origin", "https://example.com", "null", one_in=10),
    _optional("Cookie", "sessionid=none", "", "csrftoken=none; other", one_in=10),
    _optional("Content-Type", "application/json", "text/plain", "application/json; charset=latin-1", one_in=8),
    _optional("If-Modified-Since", "Tue, 01 Dec 2026 00:00:00 GMT", "x", one_in=8),
    _optional("Range", "bytes=0-1", one_in=8),
).map(_merge)
body_headers = st.tuples(
    _optional("Idempotency-Key", "one", '"one"', "two", one_in=2),
    _optional("Idempotency-Key", "", " ", "one, two", '"one', "x" * 256, "é", '"a b"', one_in=15),
    _optional("Content-Encoding", "identity", "gzip", one_in=25),
    _optional("Content-Range", "bytes 0-1/2", one_in=25),
    _optional("Content-Type", "application/json; charset=utf-8", "APPLICATION/JSON", "application/json;", one_in=5),
    _optional(
        "Content-Type",
        *("application/merge-patch+json", "application/json; charset=utf-16", "application/json; x", "text/plain", ""),
        *("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/x-ndjson"),
        one_in=12,
    ),
    _optional("If-Match", TAG, one_in=4),
    _optional("If-Match", f"W/{TAG}", "*", '"x"', "x", one_in=10),
    _optional("If-None-Match", "*", '"x"', TAG, one_in=10),
    _optional("Accept", *(accept for accept, is_json in ACCEPT.items() if is_json), one_in=5),
    _optional("Accept-Encoding", "gzip", one_in=5),
    _optional("Origin", "https://example.com", one_in=20),
).map(_merge)

# JSON, as it stands in a body.
TOKENS = (
    *("null", "true", "0", "1", "-1", "1.0", "1.50", "12.345", "1e2", "1E+2", "1e400", "1e999999999", "-0", "NaN"),
    *("9" * 19, "9223372036854775808", "2147483648", "9" * 5000, "0." + "1" * 70, "[]", "{}", '["a"]', '{"a": 1}'),
    *('""', '" "', '"Tea"', '" Tea "', '"1"', '"1.5"', '"user@example.com"', '"new@example.com"', '"admin"'),
    *('"inactive"', '"\\u0000"', '"\\ud800"', '"\\ud83d\\ude00"', '"é\\n"', '"a\\tb"', f'"{"x" * 300}"'),
    *('"2099-01-01T00:00:00Z"', '"2001-02-03"', '"four other words instead"', '["users:read"]', '["none"]'),
)
_NAMES = st.sampled_from(
    [
        *("id", "name", "email", "role", "status", "external_id", "password", "password_hash", "current_password"),
        *("item", "qty", "amount"),
        *("currency", "title", "body", "text", "user_id", "post_id", "created_at", "scopes", "expires_at"),
        *("overlap_seconds", "nothing"),
    ]
)
MALFORMED = (
    *(b"", b" ", b"{", b"[]", b"null", b'"a"', b"1", b"{}{}", b"\xef\xbb\xbf{}", b'{"a": "\xff"}', b"{'a': 1}"),
    *(b'{"a": 1,}', b'{"a": 1, "a": 2}', b'{"item": "Tea", "item": "Tea"}', b"{" * 2000, b"name=a&email=b"),
    *(b'{"a":' * depth + b"1" + b"}" * depth for depth in (31, 32, 33, 40)),
    *(b"\x00", b'{"a": Infinity}', b'{"a": 01}', b'{"a": ' + b"1" * 70_000 + b"}"),
)


def bodies(valid: Sequence[str]) -> st.SearchStrategy[bytes]:
    """Bodies: valid ones, with members that are left out, replaced, added or repeated, and malformed ones.

    Args:
        valid: the members of a valid body, such as `"qty": 1`.
    """
    other = st.tuples(_NAMES, st.sampled_from(TOKENS)).map(lambda pair: f'"{pair[0]}": {pair[1]}')
    own = st.tuples(st.sampled_from([member.partition(":")[0] for member in valid]), st.sampled_from(TOKENS)).map(
        ": ".join
    )
    altered = st.tuples(st.permutations(valid), st.integers(0, len(valid)), st.lists(own | other, max_size=2)).map(
        lambda parts: [*parts[0][: parts[1]], *parts[2]]
    )
    replaced = st.tuples(st.sampled_from(valid), own).map(
        lambda pair: [each for each in valid if each.partition(":")[0] != pair[1].partition(":")[0]] + [pair[1]]
    )
    members = st.one_of(st.just(list(valid)), replaced, altered)
    return st.one_of(*[members.map(lambda parts: f"{{{', '.join(parts)}}}".encode())] * 8, st.sampled_from(MALFORMED))
