"""Text in bodies: kept as sent, and refused where the contract refuses it."""

from itertools import count
from typing import Any, NamedTuple

import pytest

from tests.conftest import PASSWORD, Caller, with_password


class Field(NamedTuple):
    """A text field: where it is created, what goes with it, and how long it may be."""

    path: str
    name: str
    rest: dict[str, Any]
    limit: int
    lines: bool = False


FIELDS = [
    Field("/users", "name", {}, 200),
    Field("/orders", "item", {"qty": 1}, 200),
    Field("/users/{id}/posts", "title", {}, 200),
    Field("/users/{id}/posts", "body", {"title": "t"}, 20_000, lines=True),
    Field("/posts/{post}/comments", "text", {}, 5_000, lines=True),
]
# Blanks, and the kinds of characters that have no picture: ignorable, fillers, joiners, selectors and tags.
BLANK = (
    *(" ", "   ", "\u00a0", "\u3000", "\u2028", "\u2003 \u2009", "\u1680"),
    *(
        *("\u200b", "\u200b\u200c\u200d\u2060\ufeff", "\u00ad", "\u034f", "\u061c", "\u115f\u1160", "\u17b4\u17b5"),
        "\u180e",
    ),
    *(
        *("\u2800", "\u2800 \u2800", "\u3164", "\uffa0", "\ufe0f", "\ufff9\ufffa\ufffb", "\u202e", "\u2066\u2069"),
        "\u2063",
    ),
    *("\U00013441", "\U0001d159", "\U0001d173", "\U000e0001", "\U000e0041\U000e007f", "\U000e0100", "\U000e0fff"),
)
BLANK_OF_EACH_KIND = (" ", "\u200b", "\u2800")
EVERY_FIELD = pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)


@pytest.fixture
def write(admin: Caller):
    """Creates a resource with one text field as given."""
    post = admin.post(f"/users/{admin.user.pk}/posts", {"title": "first"}).data["id"]
    numbers = count()

    def create(field: Field, value: Any):
        rest = {"email": f"{next(numbers)}@example.com"} if field.path == "/users" else field.rest
        return admin.post(field.path.format(id=admin.user.pk, post=post), {**rest, field.name: value})

    create.caller = admin
    return create


@EVERY_FIELD
def test_text_is_kept_as_sent(write, field: Field) -> None:
    for value in [
        *("a", "  outer blanks  ", "\u00a0\u3000a\u2003", "e\u0301 is not é", "😀👨‍👩‍👧", "مرحبا"),
        *("\u202eright to left", "a\u200bb", "<script>alert(1)</script>", "'; DROP TABLE users; --", "%s {0} \\n"),
        *("null", "0", "\ufffe\uffff\U0010ffff"),
    ]:
        created = write(field, value)
        assert (created.status, created.data[field.name]) == (201, value)
        assert write.caller.get(created.headers["Location"]).data[field.name] == value


@EVERY_FIELD
def test_blank_text_is_refused(write, field: Field) -> None:
    path = write(field, "a").headers["Location"]
    before = write.caller.get(path).data
    for value in BLANK if field is FIELDS[0] else BLANK_OF_EACH_KIND:
        answers = [write(field, value)]
        # An order cannot be changed.
        if field.name != "item" and value in BLANK_OF_EACH_KIND:
            answers += [write.caller.put(path, {**before, field.name: value})]
            answers += [write.caller.patch(path, {field.name: value})]
        for answer in answers:
            assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {field.name}), ascii(value)


@pytest.mark.parametrize(
    "value", ["\u200ba", "❤️", "\u2800⠁", "\u3164ㄱ", "ไทย\u200b", "🏴\U000e0067\U000e007f", "\ue000", "\u0301"]
)
def test_text_with_one_character_that_can_be_seen_is_not_blank(write, value: str) -> None:
    assert write(FIELDS[0], value).data["name"] == value


@EVERY_FIELD
def test_empty_text_passes_in_a_body_only(write, field: Field) -> None:
    answer = write(field, "")
    if field.name == "body":
        assert (answer.status, answer.data["body"]) == (201, "")
    else:
        assert (answer.status, answer.fields) == (400, {field.name})


@EVERY_FIELD
def test_control_character_or_lone_surrogate_is_refused(write, field: Field) -> None:
    for character in [
        "\x00",
        "\x01",
        "\x07",
        "\x08",
        "\x1b",
        "\x1f",
        "\x7f",
        "\x80",
        "\x90",
        "\x9f",
        chr(0xD800),
        chr(0xDBFF),
        chr(0xDC00),
        chr(0xDFFF),
    ]:
        for value in (character, f"a{character}", f"{character}b", f"a{character}b"):
            answer = write(field, value)
            assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {field.name})


@EVERY_FIELD
def test_surrogates_the_wrong_way_round_are_refused(write, field: Field) -> None:
    assert write(field, "\udc00\ud800").fields == {field.name}


@EVERY_FIELD
@pytest.mark.parametrize("character", ["\t", "\n", "\r", "\r\n"], ids=repr)
def test_tab_and_line_break_pass_in_text_of_many_lines_only(write, field: Field, character: str) -> None:
    value = f"a{character}b{character}"
    answer = write(field, value)
    if field.lines:
        assert (answer.status, answer.data[field.name]) == (201, value)
    else:
        assert (answer.status, answer.fields) == (400, {field.name})


@EVERY_FIELD
@pytest.mark.parametrize("character", ["a", "é", "漢", "😀"])
def test_length_counts_code_points(write, field: Field, character: str) -> None:
    assert write(field, character * field.limit).data[field.name] == character * field.limit
    refused = write(field, character * (field.limit + 1))
    assert (refused.status, refused.fields) == (400, {field.name})


@EVERY_FIELD
def test_text_of_another_type_is_refused(write, field: Field) -> None:
    for value in [None, True, False, 0, 1, 1.5, [], ["a"], {}, {"a": "b"}]:
        answer = write(field, value)
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {field.name})


LONGEST_EMAIL = f"{'a' * 64}@{'b' * 63}.{'c' * 63}.{'d' * 57}.com"


@pytest.mark.parametrize("email", ["Mixed.Case+tag@Example.COM", "a@b.co", LONGEST_EMAIL, "a@bücher.example"])
def test_email_is_kept_as_given(admin: Caller, email: str) -> None:
    created = admin.post("/users", {"name": "a", "email": email})
    assert (created.status, created.data["email"]) == (201, email)
    assert admin.get(created.headers["Location"]).data["email"] == email


def test_email_that_is_none_is_refused(admin: Caller) -> None:
    for email in [
        "",
        " ",
        "a",
        "a@",
        "@b.co",
        "a b@example.com",
        " a@example.com",
        "a@example.com ",
        "a@example.com\n",
        "a@@b.co",
        "a\x00@example.com",
        "a@exam\ud800ple.com",
        "a@b.co\u0085",
        "d" + LONGEST_EMAIL,
        f"a@{'b' * 300}.com",
        None,
        True,
        1,
        1.5,
        [],
        {},
        ["a@example.com"],
    ]:
        answer = admin.post("/users", {"name": "a", "email": email})
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {"email"})


@pytest.mark.parametrize("field", ["role", "status"])
def test_unknown_choice_is_refused(admin: Caller, field: str) -> None:
    for value in ["", " ", "USER", "Active", "user ", "\x00", "\ud800", "superuser", None, True, 0, [], {}, ["user"]]:
        answer = admin.post("/users", {"name": "a", "email": "new@example.com", field: value})
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {field})


@pytest.mark.parametrize("password", ["  outer blanks too  ", "пароль на память 😀", "x9-" * 42 + "ab"])
def test_password_is_taken_as_sent(admin: Caller, password: str, make_user) -> None:
    created = admin.post("/users", {"name": "a", "email": "new@example.com", "password": password})
    assert created.status == 201
    assert "password" not in created.data
    account = make_user().__class__.objects.get(pk=created.data["id"])
    assert with_password(account, password).get("/api/protected").status == 200
    assert with_password(account, password[:-1]).get("/api/protected").status == 401
    assert with_password(account, password.strip() + ".").get("/api/protected").status == 401


def test_password_is_never_null_in_a_patch(make_user) -> None:
    caller = with_password(make_user(password=PASSWORD))
    answer = caller.patch(f"/users/{caller.user.pk}", {"password": None, "current_password": PASSWORD})
    assert (answer.status, answer.fields) == (400, {"password"})
    assert caller.get("/api/protected").status == 200
