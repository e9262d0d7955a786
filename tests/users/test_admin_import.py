"""The import of users: preview, confirmation, and the rules of the API for each line."""

from __future__ import annotations

import re
import time
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.conftest import signed_in
from users import admin_import
from users.models import User

IMPORT = "/admin/users/user/import/"


def choose(pages: Client, content: str | bytes) -> Any:
    raw = content if isinstance(content, bytes) else content.encode()
    return pages.post(IMPORT, {"file": SimpleUploadedFile("users.csv", raw)})


def confirm(pages: Client, preview: Any) -> Any:
    content = re.search(r'name="content" value="([^"]+)"', preview.content.decode())[1]
    return pages.post(IMPORT, {"content": content}, follow=True)


def get_errors(answer: Any) -> list[tuple[int, str]]:
    assert answer.status_code == 200
    return answer.context.get("errors") or []


def lines(number: int) -> str:
    return "name,email\n" + "".join(f"User {each},new{each}@example.com\n" for each in range(number))


def test_preview_writes_nothing_and_confirming_adds_the_users(pages):
    preview = choose(
        pages, "\ufeffName,Email,role,status\nZoë Z,Zoe@example.com,support,inactive\n B ,b@example.com,,\n"
    )
    assert (preview.status_code, User.objects.count()) == (200, 1)
    assert "Zoë Z" in preview.content.decode()
    assert "Imported 2 users." in confirm(pages, preview).content.decode()
    made = User.objects.order_by("id").values_list("name", "email", "role", "status")[1:]
    assert list(made) == [
        ("Zoë Z", "Zoe@example.com", "support", "inactive"),
        (" B ", "b@example.com", "user", "active"),
    ]
    assert not any(user.has_usable_password() for user in User.objects.all()[1:])
    assert LogEntry.objects.filter(change_message="Imported.").count() == 2
    # The triggers count imported rows as any others.
    assert pages.get("/admin/users/user/").context["cl"].result_count == 3


def test_invalid_lines_are_listed_and_no_user_is_added(pages, make_user):
    make_user(email="taken@example.com")
    file = (
        "name,email,role\n"
        "Good,good@example.com,user\n"
        ",nameless@example.com,user\n"
        "\n"
        'Two,"TAKEN@example.com",user\n'
        "Three,no email,boss\n"
        "Again,GOOD@example.com,\n"
        f"{'x' * 201},long@example.com,\n"
    )
    answer = choose(pages, file)
    assert [(line, message.partition(":")[0]) for line, message in get_errors(answer)] == [
        (3, "name"),
        (5, "email"),
        (6, "email"),
        (6, "role"),
        (7, "email"),
        (8, "name"),
    ]
    assert "5 of 6 lines have errors" in answer.content.decode()
    assert 'name="content"' not in answer.content.decode()
    assert User.objects.count() == 2
    assert not LogEntry.objects.exists()


def test_line_that_became_invalid_after_the_preview_adds_no_user(pages, make_user):
    preview = choose(pages, lines(3))
    make_user(email="new1@example.com")
    answer = confirm(pages, preview)
    assert get_errors(answer) == [(3, "email: Another user has this email address.")]
    assert User.objects.count() == 2


def test_unreadable_file_shows_an_error(pages):
    for content, message in [
        ("", "file is empty"),
        ("name\nA\n", "Missing: email"),
        ("name,email,password\nA,a@example.com,secret words\n", "Unknown columns: password"),
        ("name,email,email\nA,a@example.com,b@example.com\n", "a column twice"),
        ("name;email\nA;a@example.com\n", "separated by commas"),
        ("name,email\n", "no rows below"),
        ("name,email\nA\n", "Line 2 has more or fewer cells than the header"),
        ("name,email\nA,a@example.com,b\n", "Line 2 has more or fewer cells than the header"),
        ('name,email\n"A,a@example.com\n', "not valid CSV"),
        ("name,email\nÄ,a@example.com\n".encode("latin-1"), "not UTF-8"),
        (b"name,email\n" + b"x" * admin_import.MAX_BYTES, "larger than 512 KiB"),
        (lines(admin_import.MAX_LINES + 1), "more than 1,000 lines"),
    ]:
        answer = choose(pages, content)
        assert answer.status_code == 200
        assert message in answer.content.decode()
        assert User.objects.count() == 1


def test_columns_that_only_the_service_sets_are_ignored(pages):
    file = "id,name,email,role,status,created_at,updated_at\n1,A,a@example.com,user,active,2020-01-01,2020-01-01\n"
    confirm(pages, choose(pages, file))
    made = User.objects.get(email="a@example.com")
    assert made.pk != 1
    assert made.created_at.year > 2020


@pytest.mark.parametrize("name", ["a\x07b", "a\x00b", "\ud7ff\u2028", "   "])
def test_names_are_valid_as_in_the_api(pages, admin, name):
    refused = admin.post("/users", {"name": name, "email": "a@example.com"}).status != 201
    User.objects.filter(email="a@example.com").delete()
    assert bool(get_errors(choose(pages, f"name,email\n{name},a@example.com\n"))) == refused


def test_forged_confirmation_is_validated_again(pages):
    forged = urlsafe_b64encode(b"name,email,password\nA,a@example.com,x\n").decode()
    for content in (forged, "%%%", "====", urlsafe_b64encode(b"\xff").decode(), ""):
        answer = pages.post(IMPORT, {"content": content})
        assert answer.status_code == 200
        assert "The upload was incomplete" in answer.content.decode()
    assert User.objects.count() == 1


@pytest.mark.parametrize("role", ["support", "user"])
def test_import_requires_an_administrator(make_user, role):
    client = signed_in(make_user(role))
    content = urlsafe_b64encode(lines(1).encode()).decode()
    statuses = {client.get(IMPORT).status_code, choose(client, lines(1)).status_code}
    statuses.add(client.post(IMPORT, {"content": content}).status_code)
    assert statuses == ({403} if role == "support" else {302})
    assert User.objects.count() == 1
    if role == "support":
        assert b"/import/" not in client.get("/admin/users/user/").content


def test_hundreds_of_lines_are_imported_within_seconds(pages):
    began = time.process_time()
    confirm(pages, choose(pages, lines(200)))
    assert User.objects.count() == 201
    assert time.process_time() - began < 4
