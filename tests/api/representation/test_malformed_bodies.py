"""What contract section 5 calls malformed."""

import json

import pytest

from orders.models import Order
from tests.api.wire import error_of, quickly, send
from tests.conftest import Caller

MALFORMED = {
    "empty": b"",
    "white space": b" \t\r\n",
    "Latin-1": '{"item": "é", "qty": 1}'.encode("latin-1"),
    "cut UTF-8": b'{"item": "\xf0\x9f\x98", "qty": 1}',
    "overlong UTF-8": b'{"item": "\xc0\xaf", "qty": 1}',
    "surrogate in UTF-8": b'{"item": "\xed\xa0\x80", "qty": 1}',
    "above U+10FFFF": b'{"item": "\xf4\x90\x80\x80", "qty": 1}',
    "UTF-16": '{"item": "a", "qty": 1}'.encode("utf-16"),
    "UTF-16 without mark": '{"item": "a", "qty": 1}'.encode("utf-16-le"),
    "byte order mark": b'\xef\xbb\xbf{"item": "a", "qty": 1}',
    "byte order mark alone": b"\xef\xbb\xbf",
    "cut": b'{"item": "a", "qty": 1',
    "cut in a string": b'{"item": "a',
    "trailing comma": b'{"item": "a", "qty": 1,}',
    "trailing comma in an array": b'{"item": "a", "qty": 1, "x": [1,]}',
    "missing comma": b'{"item": "a" "qty": 1}',
    "missing colon": b'{"item" "a", "qty": 1}',
    "single quotes": b"{'item': 'a', 'qty': 1}",
    "bare name": b'{item: "a", "qty": 1}',
    "comment": b'{"item": "a", "qty": 1} // order',
    "second value": b'{"item": "a", "qty": 1}{}',
    "leading form feed": b'\x0c{"item": "a", "qty": 1}',
    "leading no-break space": '\u00a0{"item": "a", "qty": 1}'.encode(),
    "NUL at the end": b'{"item": "a", "qty": 1}\x00',
    "raw NUL in a string": b'{"item": "a\x00", "qty": 1}',
    "raw line break in a string": b'{"item": "a\nb", "qty": 1}',
    "bad escape": b'{"item": "\\x41", "qty": 1}',
    "short escape": b'{"item": "\\u12", "qty": 1}',
    "escape with a sign": b'{"item": "\\u+123", "qty": 1}',
    "leading zero": b'{"item": "a", "qty": 01}',
    "leading plus": b'{"item": "a", "qty": +1}',
    "bare fraction": b'{"item": "a", "qty": .5}',
    "open fraction": b'{"item": "a", "qty": 1.}',
    "open exponent": b'{"item": "a", "qty": 1e}',
    "hexadecimal": b'{"item": "a", "qty": 0x1}',
    "underscore": b'{"item": "a", "qty": 1_0}',
    "Arabic digit": '{"item": "a", "qty": ٢}'.encode(),
    "True": b'{"item": "a", "qty": True}',
    "NaN": b'{"item": "a", "qty": NaN}',
    "Infinity": b'{"item": "a", "qty": Infinity}',
    "-Infinity": b'{"item": "a", "qty": -Infinity}',
    "NaN in an unknown field": b'{"item": "a", "qty": 1, "x": [NaN]}',
    "duplicate key": b'{"item": "a", "qty": 1, "qty": 1}',
    "duplicate key, escaped": b'{"item": "a", "qty": 1, "\\u0071ty": 2}',
    "duplicate unknown key": b'{"item": "a", "qty": 1, "x": 1, "x": 1}',
    "duplicate key below": b'{"item": "a", "qty": 1, "x": {"y": [{"z": 1, "z": 2}]}}',
    "array": b'[{"item": "a", "qty": 1}]',
    "string": b'"item"',
    "number": b"1",
    "null": b"null",
    "true": b"true",
}


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_malformed_body_is_refused_and_has_no_effect(user: Caller, accept: str) -> None:
    for body in MALFORMED.values():
        headers = {**user.headers, "Accept": accept}
        response = send("POST", "/orders", body, "application/json", headers=headers)
        assert response.status_code == 400
        assert b"MALFORMED_JSON" in response.content
        if accept == "application/json":
            error_of(response, 400, "MALFORMED_JSON")
        assert not Order.objects.exists()


def test_no_body_and_no_content_type_is_an_empty_body(user: Caller) -> None:
    error_of(send("POST", "/orders", headers=user.headers), 400, "MALFORMED_JSON")


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")], ids=["arrays", "objects"])
def test_nesting_of_32_passes_and_33_is_malformed(user: Caller, opening: str, closing: str) -> None:
    def order(depth: int) -> bytes:
        inner = opening * (depth - 1) + "1" + closing * (depth - 1)
        return f'{{"item": "a", "qty": 1, "x": {inner}}}'.encode()

    assert user("POST", "/orders", raw=order(32)).status == 201
    assert user("POST", "/orders", raw=order(33)).code == "MALFORMED_JSON"


def test_many_shallow_containers_are_not_deep(user: Caller) -> None:
    assert user.post("/orders", {"item": "a", "qty": 1, "x": [[{}]] * 2_000}).status == 201


def test_nesting_without_end_is_malformed_at_once(user: Caller) -> None:
    for depth in [33, 2_000]:
        for before, after in [("[", "]"), ('{"a":', "}"), ('{"a":[', "]}"), ("[", ""), ('{"a":', "")]:
            with quickly():
                answer = user("POST", "/orders", raw=(before * depth + "1" + after * depth).encode())
            assert (answer.status, answer.code) == (400, "MALFORMED_JSON")


def test_odd_body_of_its_greatest_size_is_answered_at_once(user: Caller) -> None:
    for body in [
        b'{"item": "a", "qty": 1, "x": [' + b"[]," * 5_000 + b"[]]}",
        b"{" + b",".join(b'"%d":1' % number for number in range(1_800)) + b"}",
        b'{"item": "' + b"\\ud800" * 2_700 + b'", "qty": 1}',
        b'{"item": "' + b"\\" * 16_000,
        b'"' * 16_000,
        b" " * 16_000,
        b'"' + b"[" * 16_000,
    ]:
        with quickly():
            answer = user("POST", "/orders", raw=body)
        assert answer.status in {201, 400}


@pytest.mark.parametrize("body", [b'{"item": "a", "qty": 1}', b' \n{ "qty" :1,\r\n"item"\t:"\\u0061"}\t '])
def test_any_spelling_of_the_same_json_is_read(user: Caller, body: bytes) -> None:
    answer = user("POST", "/orders", raw=body)
    assert (answer.status, answer.data["item"], answer.data["qty"]) == (201, "a", 1)


def test_emoji_passes_raw_and_as_a_pair_of_escapes(user: Caller) -> None:
    for body in (json.dumps({"item": "😀", "qty": 1}), json.dumps({"item": "😀", "qty": 1}, ensure_ascii=False)):
        assert user("POST", "/orders", raw=body.encode()).data["item"] == "😀"
