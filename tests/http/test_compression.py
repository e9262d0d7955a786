"""gzip, where the client wants it and the answer is long."""

import gzip
import json

import pytest

from posts.models import Post
from tests.api.wire import send
from tests.conftest import PASSWORD

LONG = "a long body " * 200


@pytest.fixture
def path(user):
    return f"/posts/{Post.objects.create(user=user.user, title='T', body=LONG).pk}"


@pytest.fixture
def get(user):
    """GET with an Accept-Encoding, or none."""

    def read(path, accept_encoding=None, method="GET", **headers):
        coding = {} if accept_encoding is None else {"Accept-Encoding": accept_encoding}
        return send(method, path, headers={**user.headers, **coding, **headers})

    return read


def names(header):
    return {name.strip() for name in header.split(",")}


def test_long_answer_is_coded_for_whoever_accepts_it(get, path):
    for accept_encoding in [
        *("gzip", "GZIP", "x-gzip", "gzip;q=0.001", "deflate, gzip;q=1.0, *;q=0.5", "gzip, deflate, br, zstd", "*"),
        *("*;q=0.1", "br, *", "identity;q=0.5, gzip;q=0.5", "gzip;q=0.1, *;q=0", "identity;q=0, *"),
    ]:
        plain, coded = get(path), get(path, accept_encoding)
        assert coded.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(coded.content) == plain.content
        assert coded.headers["Content-Length"] == str(len(coded.content))
        assert len(coded.content) < len(plain.content) / 3
        assert coded.headers["ETag"] == plain.headers["ETag"][:-1] + '-gzip"'
        assert get(path, accept_encoding).content == coded.content
        assert names(coded.headers["Vary"]) >= {"Accept-Encoding", "Accept", "Authorization", "X-API-Key", "Cookie"}


def test_answer_is_left_plain_for_whoever_does_not(get, path):
    for accept_encoding in [
        *(None, "", "identity", "br", "gzip;q=0", "gzip;q=0, *", "*;q=0", "identity;q=0", "identity, gzip;q=0.5"),
        *("gzip;q=0.4, *;q=0.5", "gzipped", "deflate", ";;, ,"),
    ]:
        answer = get(path, accept_encoding)
        assert answer.status_code == 200
        assert "Content-Encoding" not in answer.headers
        assert "Accept-Encoding" in names(answer.headers["Vary"])
        assert json.loads(answer.content)["data"]["body"] == LONG


def test_short_answer_is_left_plain_unless_plain_is_refused(get, user):
    path = f"/users/{user.user.pk}?fields=id"
    assert "Content-Encoding" not in get(path, "gzip").headers
    assert get(path, "gzip, identity;q=0").headers["Content-Encoding"] == "gzip"


def test_head_tells_of_the_coding_what_get_does(get, path):
    read, head = get(path, "gzip"), get(path, "gzip", "HEAD")
    assert head.content == b""
    for name in ("ETag", "Content-Encoding", "Content-Length", "Vary"):
        assert head.headers[name] == read.headers[name]


def test_client_has_what_it_was_sent_in_the_coding_it_was_sent_in(get, path):
    plain, coded = (get(path, coding).headers["ETag"] for coding in (None, "gzip"))
    for tag, coding in ((plain, None), (coded, "gzip")):
        unchanged = get(path, coding, **{"If-None-Match": tag})
        assert (unchanged.status_code, unchanged.content, unchanged.headers["ETag"]) == (304, b"", tag)
        assert "Content-Encoding" not in unchanged.headers
        assert "Accept-Encoding" in names(unchanged.headers["Vary"])
        assert get(path, coding, **{"If-None-Match": f"{plain}, {coded}"}).headers["ETag"] == tag
    # The tag of one coding is not that of the other (section 8.8.3.3).
    assert get(path, "gzip", **{"If-None-Match": plain}).status_code == 200
    assert get(path, None, **{"If-None-Match": coded}).status_code == 200


def test_write_takes_the_tag_of_either_coding_and_is_coded_too(user, get, path):
    for coding in ("gzip", None):
        tag = get(path, coding).headers["ETag"]
        headers = {**user.headers, "If-Match": tag, "Accept-Encoding": "gzip"}
        answer = send("PATCH", path, b'{"title": "New"}', "application/json", headers=headers)
        assert (answer.status_code, answer.headers["Content-Encoding"]) == (200, "gzip")
        assert answer.headers["ETag"] == get(path, "gzip").headers["ETag"]


@pytest.mark.parametrize(("path", "accept"), [("/openapi.json", "*/*"), ("/users", "text/html"), ("/posts", "*/*")])
def test_lists_documents_and_pages_are_coded(get, user, path, accept):
    Post.objects.create(user=user.user, title="T", body=LONG)
    answer = get(path, "gzip", Accept=accept)
    assert (answer.status_code, answer.headers["Content-Encoding"]) == (200, "gzip")
    assert len(gzip.decompress(answer.content)) > len(answer.content)


def test_secrets_and_what_a_cookie_opened_are_never_coded(make_user, client, path, get):
    long_name = {"name": "k" * 100, "scopes": ["users:read"]}
    caller = make_user(password=PASSWORD, email="in@example.com")
    login = send(
        "POST", "/api/login", json.dumps({"email": caller.email, "password": PASSWORD}).encode(), "application/json"
    )
    bearer = {"Authorization": f"Bearer {json.loads(login.content)['data']['access_token']}"}
    for _ in range(8):
        send("POST", "/api-keys", json.dumps(long_name).encode(), "application/json", headers=bearer)
    keys = send("GET", "/api-keys", headers={**bearer, "Accept-Encoding": "gzip"})
    assert len(keys.content) > 1024
    assert not {"Content-Encoding"} & keys.headers.keys()
    client.force_login(caller)
    page = client.get(path, headers={"Accept-Encoding": "gzip"})
    assert page.status_code == 200
    assert "Content-Encoding" not in page.headers
