"""What a body may be called: Content-Type and Content-Encoding."""

import pytest

from orders.models import Order
from posts.models import Post
from tests.api.wire import error_of, quickly, send
from tests.conftest import Caller

ORDER = b'{"item": "a", "qty": 1}'
MERGE_PATCH = "application/merge-patch+json"

TAKEN = [
    *("application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8"),
    *('application/json; charset="utf-8"', 'application/json ; CHARSET="Utf-8"', "application/json; charset=utf8"),
    *('application/json; charset="UTF8"', "application/json;"),
]
REFUSED = [
    *("", "json", "text/plain", "text/json", "text/html", "application/x-www-form-urlencoded"),
    *("multipart/form-data; boundary=x", "application/jsonx", "xapplication/json", "application/json+json"),
    *("application/vnd.api+json", "application/*", "*/*", "application/json, text/plain"),
    *("application/json garbage", "application/json; garbage", "application/json; =x", "application/json; charset"),
    *("application/json; charset=", 'application/json; charset="utf-8', "application/json; charset=utf-16"),
    *('application/json; charset="utf-16"', "application/json; charset=utf-7"),
    *("application/json; charset=iso-8859-1", "application/json; charset=utf-8; charset=utf-16"),
    *("application/json; x=y; charset=utf-16", "application/json; CHARSET=UTF-16"),
]


def test_json_is_taken_under_every_spelling_of_its_type(user: Caller) -> None:
    for content_type in TAKEN:
        assert send("POST", "/orders", ORDER, content_type, headers=user.headers).status_code == 201


def test_other_content_type_is_refused_and_has_no_effect(user: Caller) -> None:
    for content_type in REFUSED:
        response = send("POST", "/orders", ORDER, content_type, headers=user.headers)
        error_of(response, 415, "UNSUPPORTED_MEDIA_TYPE")
        assert response.headers["Accept"] == "application/json"
        assert not Order.objects.exists()


@pytest.mark.parametrize("content_type", [*TAKEN, *(kind.replace("/json", "/merge-patch+json") for kind in TAKEN[:1])])
def test_patch_takes_json(user: Caller, content_type: str) -> None:
    response = send("PATCH", f"/users/{user.user.pk}", b'{"name": "New"}', content_type, headers=user.headers)
    assert response.status_code == 200
    assert user.get(f"/users/{user.user.pk}").data["name"] == "New"


def test_other_content_type_of_a_patch_is_refused_with_what_a_patch_may_be(user: Caller) -> None:
    for content_type in REFUSED:
        response = send("PATCH", f"/users/{user.user.pk}", b'{"name": "New"}', content_type, headers=user.headers)
        error_of(response, 415, "UNSUPPORTED_MEDIA_TYPE")
        offered = {one.strip() for one in response.headers["Accept-Patch"].split(",")}
        assert offered == {"application/json", MERGE_PATCH}
        assert user.get(f"/users/{user.user.pk}").data["name"] == "Uma User"


@pytest.mark.parametrize("content_type", [MERGE_PATCH, f"{MERGE_PATCH}; charset=utf-8", MERGE_PATCH.upper()])
def test_merge_patch_is_taken_by_patch_only(user: Caller, content_type: str) -> None:
    path = f"/users/{user.user.pk}"
    body = b'{"name": "New", "email": "new@example.com", "title": "t"}'

    def status_of(method: str, path: str) -> int:
        return send(method, path, body, content_type, headers=user.headers).status_code

    assert status_of("PUT", path) == 415
    assert status_of("POST", f"{path}/posts") == 415
    assert user.get(path).data["name"] == "Uma User"
    assert not Post.objects.exists()
    assert status_of("PATCH", path) == 200
    assert user.get(path).data["name"] == "New"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_content_encoding_is_refused(user: Caller, method: str) -> None:
    for coding in ["gzip", "deflate", "br", "zstd", "identity", "gzip, identity", "nonsense"]:
        path = "/orders" if method == "POST" else f"/users/{user.user.pk}"
        headers = {**user.headers, "Content-Encoding": coding}
        response = send(method, path, ORDER, "application/json", headers=headers)
        error_of(response, 415, "UNSUPPORTED_MEDIA_TYPE")
        assert not Order.objects.exists()


def test_content_type_made_to_be_hard_to_read_is_refused_at_once(user: Caller) -> None:
    for parameters in [
        "; " * 22 + "!",
        " ;" * 22 + " !",
        ";\t" * 22 + '"',
        "; a=b" * 1_000 + "@",
        ';a="' * 2_001,
        "a" * 16_000,
    ]:
        with quickly():
            response = send("POST", "/orders", ORDER, f"application/json{parameters}", headers=user.headers)
        error_of(response, 415, "UNSUPPORTED_MEDIA_TYPE")
