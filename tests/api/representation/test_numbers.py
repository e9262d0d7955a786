"""Numbers in bodies: exact, typed, and refused before they cost anything."""

import pytest

from tests.api.wire import quickly
from tests.conftest import Caller

TOO_LONG = {
    "41 digits": "1" * 41,
    "41 characters with a sign": "-" + "1" * 40,
    "41 characters of a fraction": "1." + "0" * 39,
    "41 characters with an exponent": "1." + "0" * 36 + "e1" + "0",
    "exponent 21": "1e21",
    "exponent +21": "1E+21",
    "exponent -21": "1e-21",
    "zero to the 21st": "0e21",
    "exponent of nine digits": "1e999999999",
    "exponent of minus nine digits": "1e-999999999",
    "exponent of 4,301 digits": "1e" + "9" * 4301,
}
LONG_BUT_USABLE = {
    "40 digits": "1" * 40,
    "40 characters of a fraction": "0." + "0" * 37 + "1",
    "exponent 20": "1e20",
    "exponent -20": "1e-20",
}

QTY = '{{"item": "a", "qty": {}}}'
AMOUNT = '{{"amount": {}}}'


@pytest.mark.parametrize(
    ("path", "frame", "field"), [("/orders", QTY, "qty"), ("/payments", AMOUNT, "amount")], ids=["qty", "amount"]
)
def test_number_out_of_reach_is_an_error_of_its_field(user: Caller, path: str, frame: str, field: str) -> None:
    for number in [*TOO_LONG.values(), *LONG_BUT_USABLE.values()]:
        with quickly():
            answer = user("POST", path, raw=frame.format(number).encode(), idempotency_key="k")
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {field})


@pytest.mark.parametrize(
    ("method", "path", "frame", "field"),
    [
        ("POST", "/users", '{{"name": {}, "email": "a@example.com"}}', "name"),
        ("POST", "/users", '{{"name": "a", "email": {}}}', "email"),
        ("POST", "/users", '{{"name": "a", "email": "a@example.com", "role": {}}}', "role"),
        ("POST", "/users", '{{"name": "a", "email": "a@example.com", "status": {}}}', "status"),
        ("POST", "/users", '{{"name": "a", "email": "a@example.com", "password": {}}}', "password"),
        ("POST", "/orders", '{{"item": {}, "qty": 1}}', "item"),
        ("POST", "/orders", '{{"item": "a", "qty": 1, "user_id": {}}}', "user_id"),
        ("POST", "/users/{id}/posts", '{{"title": "a", "body": {}}}', "body"),
        ("PATCH", "/users/{id}", '{{"name": {}}}', "name"),
    ],
)
def test_number_out_of_reach_is_an_error_of_any_field(
    admin: Caller, *, method: str, path: str, frame: str, field: str
) -> None:
    for number in TOO_LONG.values():
        answer = admin(method, path.replace("{id}", str(admin.user.pk)), raw=frame.format(number).encode())
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {field})


def test_number_out_of_reach_in_an_ignored_field_is_ignored(user: Caller) -> None:
    for member in ['"x": N', '"x": [[N]]', '"id": N', '"created_at": {"y": N}']:
        for number in TOO_LONG.values():
            body = f'{{"item": "a", "qty": 1, {member.replace("N", number)}}}'
            assert user("POST", "/orders", raw=body.encode()).status == 201


def test_number_that_fills_a_body_is_refused_at_once(user: Caller) -> None:
    for number in ["1" * 15_000, "-" + "9" * 15_000, "1." + "1" * 15_000, "1e" + "1" * 15_000, "0." + "0" * 15_000]:
        for path, frame, field in (("/orders", QTY, "qty"), ("/payments", AMOUNT, "amount")):
            with quickly():
                answer = user("POST", path, raw=frame.format(number).encode(), idempotency_key="k")
            assert (answer.code, answer.fields) == ("VALIDATION_ERROR", {field})


@pytest.mark.parametrize("qty", ["1", "1000000"])
def test_quantity_within_its_bounds_is_kept(user: Caller, qty: str) -> None:
    answer = user("POST", "/orders", raw=QTY.format(qty).encode())
    assert (answer.status, answer.data["qty"]) == (201, int(qty))


def test_quantity_that_is_no_integer_within_its_bounds_is_refused(user: Caller) -> None:
    for qty in [
        *("0", "-0", "-1", "1000001", "2147483648", "9223372036854775808", "1.0", "2.0", "1e0", "1e3", "1E+3"),
        *("0.5", '"2"', '""', "true", "false", "null", "[]", "[1]", "{}", '{"a": 1}'),
    ]:
        answer = user("POST", "/orders", raw=QTY.format(qty).encode())
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"qty"})


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ("0.01", b"0.01"),
        ("1", b"1.00"),
        ("12.3", b"12.30"),
        ("1e2", b"100.00"),
        ("1E+2", b"100.00"),
        ("1230e-2", b"12.30"),
        ("0.1e1", b"1.00"),
        ("9999999999.99", b"9999999999.99"),
        ("9007199254.93", b"9007199254.93"),
        ("8589934592.07", b"8589934592.07"),
        ("4503599627.37", b"4503599627.37"),
    ],
)
def test_amount_is_exact_from_the_wire_and_back(user: Caller, sent: str, answered: bytes) -> None:
    created = user("POST", "/payments", raw=AMOUNT.format(sent).encode(), idempotency_key="k")
    assert created.status == 201
    for answer in (created, user.get(f"/payments/{created.data['id']}"), user.get("/payments")):
        assert b'"amount":' + answered in answer.response.content.replace(b" ", b"")


def test_amount_that_is_no_number_within_its_bounds_is_refused(user: Caller) -> None:
    for amount in [
        *("0", "-0.0", "0.001", "0.009", "-1", "10000000000", "9999999999.991", "1.001", "1.005"),
        *("10.10000000000000000001", "12e-3", "1e10", "1e20", '"1.00"', '""', "true", "null", "[]", "{}"),
        '{"value": 1}',
    ]:
        answer = user("POST", "/payments", raw=AMOUNT.format(amount).encode(), idempotency_key="k")
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"amount"})
