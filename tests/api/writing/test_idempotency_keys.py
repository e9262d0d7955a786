"""What a key is, and which requests are the same: contract section 7."""

import re
from fractions import Fraction

import jsonschema_rs
import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from config.api.schema.generator import get_document
from config.api.writing.idempotency import canonical
from config.http.json import parse_json
from config.models import IdempotencyRecord
from payments.models import Payment
from tests.api.writing.test_idempotency import BODIES, ROWS, pay, same

# --- The header


KEYS = {
    "k": "k",
    '"k"': "k",
    " k ": "k",
    "x" * 255: "x" * 255,
    f'"{"x" * 255}"': "x" * 255,
    '"' + r"\\" * 255 + '"': "\\" * 255,
    '"a,b;c=d"': "a,b;c=d",
    r'"a\"b\\c"': r"a\"b\c".replace('\\"', '"'),
    r"a\b": r"a\b",
    "it's/<fine>:=?@[]^`{|}~!#$%&()*+-.": "it's/<fine>:=?@[]^`{|}~!#$%&()*+-.",
}
NO_KEYS = [
    "",
    " ",
    '""',
    '"',
    "a b",
    '"a b"',
    "a,b",
    "a, b",
    '"a","b"',
    '"a", "b"',
    '"a, b"',
    "k;a=b",
    '"k";a',
    "k,",
    ",k",
    'a"b',
    '"a"b',
    r'"a\b"',
    '"a\\"',
    "x" * 256,
    f'"{"x" * 256}"',
    '"' + r"\\" * 256 + '"',
    "é",
    "k\x7f",
    "\tk\x00",
]


@pytest.mark.parametrize(("sent", "key"), KEYS.items())
def test_key_is_bare_or_a_quoted_string(user, sent, key):
    assert pay(user, idempotency_key=sent).status == 201
    assert IdempotencyRecord.objects.get().key == key


def test_quoted_key_is_the_bare_one(user):
    assert same(pay(user, idempotency_key="k"), pay(user, idempotency_key='"k"'))


@pytest.mark.parametrize("path", ["/payments", "/orders"])
def test_what_is_no_single_key_is_refused(user, path):
    for sent in NO_KEYS:
        refused = user.post(path, BODIES[path], idempotency_key=sent)
        assert (refused.status, refused.code, refused.fields) == (400, "IDEMPOTENCY_KEY_INVALID", {"Idempotency-Key"})
        assert not ROWS[path].objects.exists()


@pytest.mark.parametrize("version", settings.API_VERSIONS, ids=str)
def test_reference_tells_a_key_from_what_is_none(version):
    schema = get_document(version)["components"]["parameters"]["Idempotency-Key"]["schema"]
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert [sent for sent in KEYS if not validator.is_valid(sent.strip())] == []
    assert [sent for sent in NO_KEYS if validator.is_valid(sent.strip(" \t"))] == []


# --- What counts as the same request


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ('{"amount": 1}', '{"amount":1.00 }'),
        ('{"amount": 1}', '{"amount": 1e0}'),
        ('{"amount": 100}', '{"amount": 1E+2}'),
        ('{"amount": 0.5}', '{"amount": 5e-1}'),
        ('{"amount": 1, "x": {"a": 1, "b": 2}}', '{"x": {"b": 2, "a": 1}, "amount": 1}'),
        ('{"amount": 1, "x": "é😀"}', r'{"amount": 1, "x": "\u00e9\ud83d\ude00"}'),
        ('{"amount": 1, "x": 1e999999999}', '{"amount": 1, "x": 10.0E999999998}'),
        ('{"amount": 1, "x": [0, 1]}', f'{{"amount": 1, "x": [-0.0, 1.{"0" * 60}]}}'),
        (f'{{"amount": 1, "x": 1{"0" * 50}}}', '{"amount": 1, "x": 0.1e51}'),
    ],
)
def test_other_spelling_of_the_same_json_is_the_same_request(user, first, again):
    assert same(pay(user, first.encode()), pay(user, again.encode()))


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ('{"amount": 1}', '{"amount": 1.01}'),
        ('{"amount": 1}', '{"amount": "1"}'),
        ('{"amount": 1}', '{"amount": true}'),
        ('{"amount": 1}', "{}"),
        ('{"amount": 1}', '{"amount": 1, "x": null}'),
        ('{"amount": 1, "x": 1}', '{"amount": 1, "x": "1"}'),
        ('{"amount": 1, "x": 1}', '{"amount": 1, "x": true}'),
        ('{"amount": 1, "x": 0}', '{"amount": 1, "x": false}'),
        ('{"amount": 1, "x": []}', '{"amount": 1, "x": {}}'),
        ('{"amount": 1, "x": [1, 2]}', '{"amount": 1, "x": [2, 1]}'),
        ('{"amount": 1, "x": 1e99}', '{"amount": 1, "x": 1e98}'),
        ('{"amount": 1, "x": 1.5}', '{"amount": 1, "x": ["NaN", "15", "-1"]}'),
        ('{"amount": 1, "x": 1.5}', '{"amount": 1, "x": -1.5}'),
        ('{"amount": 1, "x": "a"}', '{"amount": 1, "x": "A"}'),
        (r'{"amount": 1, "x": "\ud800"}', r'{"amount": 1, "x": "?"}'),
        ('{"amount": 1, "x": ""}', r'{"amount": 1, "x": "\u0000"}'),
    ],
)
def test_other_request_under_a_seen_key_is_422_even_where_it_would_be_invalid(user, first, again):
    assert pay(user, first.encode()).status == 201
    refused = pay(user, again.encode())
    assert (refused.status, refused.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert Payment.objects.count() == 1


DIGITS = st.text("0123456789", min_size=1, max_size=45)
EXPONENTS = st.sampled_from(["", "e0", "E+1", "e-1", "e20", "e-20", "e21", "E-0021", "e40", "e-45"])


@st.composite
def numbers(draw):
    """A JSON number, as its parts."""
    whole = draw(DIGITS).lstrip("0") or "0"
    fraction = draw(st.just("") | DIGITS.map(".{}".format))
    return draw(st.sampled_from(["", "-"])) + whole + fraction + draw(EXPONENTS)


def value_of(token):
    mantissa, _, exponent = token.lower().partition("e")
    return Fraction(mantissa) * Fraction(10) ** int(exponent or 0)


@given(first=numbers(), zeros=st.integers(0, 30), other=numbers())
def test_numbers_are_the_same_exactly_when_their_values_are(first, zeros, other):
    def text(token):
        return canonical(parse_json(b'{"a": %s}' % token.encode()))

    assert (text(other) == text(first)) is (value_of(other) == value_of(first))
    mantissa, _, exponent = first.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = re.sub("^(-?)0+", r"\1", whole + fraction)
    if digits.strip("-"):
        assert text(f"{digits}{'0' * zeros}e{int(exponent or 0) - len(fraction) - zeros}") == text(first)
