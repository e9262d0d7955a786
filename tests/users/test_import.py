"""Users who come from elsewhere: they keep their ids of there, and their passwords."""

import json
import time
from itertools import product

import argon2
import bcrypt
import pytest
from django.contrib.auth import hashers
from django.contrib.auth.hashers import make_password
from passlib import hash as passlib
from werkzeug.security import generate_password_hash

from tests.conftest import PASSWORD, Caller, new_client, with_bearer_of, with_password
from tests.users.test_admin_import import choose, confirm, get_errors
from users.models import PASSWORD_PREFIX, User
from users.password_hashes import parse_password_hash

REFUSAL = "accounts.passwords.SECONDS_OF_A_REFUSAL"

ANN = {"name": "Ann", "email": "ann@example.com", "external_id": "crm-7"}
BOB = {"name": "Bob", "email": "bob@example.com", "external_id": "crm-8"}


def send_lines(caller, *lines, query=""):
    raw = "\n".join(map(json.dumps, lines)).encode()
    return caller("POST", f"/api/v2/users{query}", raw=raw, content_type="application/x-ndjson")


@pytest.fixture
def chief(make_user):
    return with_bearer_of(make_user("admin", password=PASSWORD))


@pytest.fixture(autouse=True)
def refusal_at_once(monkeypatch):
    monkeypatch.setattr(REFUSAL, 0)


# --- external_id


def test_second_run_of_an_import_creates_nobody_and_names_the_external_id(admin):
    assert admin.post("/users", ANN).status == 201
    assert send_lines(admin, BOB).status == 201
    for given, fields in ((ANN, {"email", "external_id"}), ({**ANN, "email": "new@example.com"}, {"external_id"})):
        answer = admin.post("/users", given)
        assert (answer.status, answer.code, answer.fields) == (409, "CONFLICT", fields)
        assert send_lines(admin, given, BOB).fields >= {f"lines[1].{name}" for name in fields}
        first, second = send_lines(admin, given, BOB, query="?partial=true").data
        assert (first["status"], second["status"]) == (409, 409)
        assert {detail["field"] for detail in first["error"]["details"]} == fields
    assert User.objects.filter(external_id__startswith="crm-").count() == 2


def test_thousand_users_with_every_field_fit_into_one_request(chief):
    """As Python's json module writes them, with blanks."""
    more = {"role": "user", "status": "inactive", "password_hash": HASHES["scrypt of werkzeug"]}
    users = [{"name": "N", "email": f"{n}@example.com", "external_id": f"crm-{n}", **more} for n in range(1000)]
    answer = send_lines(chief, *users)
    assert (answer.status, answer.meta) == (201, {"created": 1000})


def test_of_lines_with_one_external_id_the_first_is_added(admin):
    lines = [
        {**ANN, "email": "z@example.com"},
        ANN,
        {**BOB, "external_id": None},
        {"name": "C", "email": "c@example.com"},
    ]
    assert send_lines(admin, *lines).fields == {"lines[2].external_id"}
    answers = send_lines(admin, *lines, query="?partial=true").data
    assert [each["status"] for each in answers] == [201, 409, 201, 201]
    assert answers[1]["error"]["details"] == [
        {"field": "external_id", "message": "An earlier line has this external_id."}
    ]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_external_id_of_another_user_is_a_conflict_at_change(admin, method):
    own = admin.post("/users", ANN).data
    other = admin.post("/users", BOB).data
    answer = admin(method, f"/users/{other['id']}", {**BOB, "external_id": "crm-7"})
    assert (answer.status, answer.fields) == (409, {"external_id"})
    answer = admin(method, f"/users/{own['id']}", {**ANN, "email": "ANN@example.com", "external_id": "crm-8"})
    assert (answer.status, answer.fields) == (409, {"external_id"})


def test_put_of_a_client_that_does_not_know_it_leaves_it_and_null_takes_it_away(admin):
    path = f"/users/{admin.post('/users', ANN).data['id']}"
    assert admin.put(path, {"name": "Anna", "email": "ann@example.com"}).data["external_id"] == "crm-7"
    assert [row["name"] for row in admin.get("/users?external_id=crm-7").data] == ["Anna"]
    for method, value in product(("PUT", "PATCH"), (None, "crm-9")):
        assert admin(method, path, {**ANN, "external_id": value}).data["external_id"] == value
    assert admin.get("/users?external_id=crm-7").data == []
    assert admin.delete(path).status == 204
    assert admin.post("/users", {**ANN, "external_id": "crm-9"}).status == 201


@pytest.mark.parametrize("value", ["", " ", "x" * 256, "a\nb", 7, True, ["crm-7"]])
def test_external_id_that_is_none_is_refused(admin, value):
    answer = admin.post("/users", {**ANN, "external_id": value})
    assert (answer.status, answer.fields) == (400, {"external_id"})


def test_admin_pages_keep_it_unique(make_user):
    browser = new_client(checks_csrf=False)
    browser.force_login(make_user("admin"))
    file = (
        f"name,email,external_id,password_hash\nAnn,ann@example.com,crm-7,{HASHES['bcrypt']}\nBob,bob@example.com,,\n"
    )
    preview = choose(browser, file)
    assert HASHES["bcrypt"] not in preview.content.decode()
    confirm(browser, preview)
    assert with_password(User.objects.get(external_id="crm-7")).get("/api/protected").status == 200
    assert get_errors(choose(browser, file.replace("ann@", "a@").replace("bob@", "b@"))) == [
        (2, "external_id: Another user has this external_id.")
    ]
    row = {"name": "N", "email": "n@example.com", "role": "user", "status": "active", "usable_password": "false"}
    answer = browser.post("/admin/users/user/add/", {**row, "external_id": "crm-7"})
    assert "Another user has this external_id." in answer.content.decode()


# --- password_hash


def encode(hasher, **costs):
    """A hash of Django's, made in no time."""
    vars(hasher).update(costs)
    return hasher.encode(PASSWORD, hasher.salt())


DJANGO = [
    encode(hashers.Argon2PasswordHasher(), time_cost=1, memory_cost=64),
    encode(hashers.BCryptSHA256PasswordHasher(), rounds=4),
    encode(hashers.PBKDF2PasswordHasher(), iterations=1000),
    encode(hashers.PBKDF2SHA1PasswordHasher(), iterations=1000),
    encode(hashers.ScryptPasswordHasher(), work_factor=1024),
]
HASHES = {
    "bcrypt": bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode(),
    "bcrypt of Rails": bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4, b"2a")).decode(),
    "bcrypt of PHP": bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode().replace("$2b$", "$2y$"),
    "argon2id": argon2.PasswordHasher(1, 1024, 4).hash(PASSWORD),
    "argon2i": argon2.PasswordHasher(1, 1024, 1, type=argon2.Type.I).hash(PASSWORD),
    "pbkdf2 of passlib": passlib.pbkdf2_sha256.using(rounds=1000).hash(PASSWORD),
    "pbkdf2-sha512 of passlib": passlib.pbkdf2_sha512.using(rounds=1000).hash(PASSWORD),
    "pbkdf2-sha1 of passlib": passlib.pbkdf2_sha1.using(rounds=1000).hash(PASSWORD),
    "scrypt of passlib": passlib.scrypt.using(rounds=10).hash(PASSWORD),
    "Django of passlib": passlib.django_pbkdf2_sha256.using(rounds=1000).hash(PASSWORD),
    "scrypt of werkzeug": generate_password_hash(PASSWORD, "scrypt:1024:8:1"),
    "pbkdf2 of werkzeug": generate_password_hash(PASSWORD, "pbkdf2:sha256:1000"),
    "pbkdf2-sha512 of werkzeug": generate_password_hash(PASSWORD, "pbkdf2:sha512:1000"),
    **{f"{text.partition('$')[0]} of Django": text for text in DJANGO},
}


@pytest.mark.parametrize("password_hash", HASHES.values(), ids=HASHES)
def test_user_logs_in_with_the_password_of_before_and_is_hashed_anew(chief, password_hash):
    created = chief.post("/users", {**ANN, "password_hash": password_hash})
    assert created.status == 201
    assert not {"password", "password_hash"} & created.data.keys()
    row = User.objects.get(pk=created.data["id"])
    assert with_password(row, f"{PASSWORD}!").get("/api/protected").status == 401
    pair = Caller().post("/api/login", {"email": row.email, "password": PASSWORD})
    assert pair.status == 200
    row.refresh_from_db()
    assert row.password.startswith(PASSWORD_PREFIX)
    assert Caller(headers={"Authorization": f"Bearer {pair.data['access_token']}"}).get("/api/protected").status == 200
    assert with_password(row).get("/api/protected").status == 200


def test_bcrypt_takes_72_bytes_as_it_did_elsewhere(chief):
    long = "four plain wörds " * 6
    hashed = bcrypt.hashpw(long.encode()[:72], bcrypt.gensalt(4)).decode()
    assert chief.post("/users", {**ANN, "password_hash": hashed}).status == 201
    assert with_password(User(email=ANN["email"]), long).get("/api/protected").status == 200


SALT, DERIVED = "c2FsdHNhbHRzYWx0", "A" * 43
REFUSED = {
    "unknown": [
        "",
        "x",
        "md5$salt$5f4dcc3b5aa765d61d8327deb882cf99",
        "5f4dcc3b5aa765d61d8327deb882cf99",
        "!",
        PASSWORD,
    ],
    "unsound": [
        "$2b$12$short",
        HASHES["bcrypt"] + "x",
        "$2b$03$" + "a" * 53,
        HASHES["pbkdf2_sha256 of Django"][:-8],
        f"$argon2id$v=19$m=8,t=1,p=2${SALT}${DERIVED}",
        f"$scrypt$ln=10,r=8,p=1${SALT}$AA",
        f"scrypt$1000${SALT}$8$1${DERIVED}",
        f"$pbkdf2-sha256$1000${SALT}${'A' * 45}",
        HASHES["pbkdf2 of passlib"] + "A" * 200,
    ],
    "too long": [
        "$2b$14$" + "a" * 53,
        "$2b$31$" + "a" * 53,
        f"$argon2id$v=19$m=1048576,t=1,p=1${SALT}${DERIVED}",
        f"$argon2id$v=19$m=65536,t=99,p=1${SALT}${DERIVED}",
        f"$argon2id$v=19$m=65536,t=1,p=255${SALT}${DERIVED}",
        f"$pbkdf2-sha256$99999999${SALT}${DERIVED}",
        f"pbkdf2_sha256$90000000${SALT}$" + "A" * 43 + "=",
        f"$pbkdf2-sha256$1000000${SALT}${'A' * 86}",
        f"$scrypt$ln=25,r=8,p=1${SALT}${DERIVED}",
        f"$scrypt$ln=99999999,r=8,p=1${SALT}${DERIVED}",
        f"$scrypt$ln=10,r=8,p=9999${SALT}${DERIVED}",
        f"scrypt:1024:99999:1${SALT}${'ab' * 64}",
    ],
}


# By number: some have another salt in each process, and all workers of a run must collect the same tests.
@pytest.mark.parametrize(("why", "number"), [(why, number) for why in REFUSED for number in range(len(REFUSED[why]))])
def test_hash_that_cannot_be_checked_soon_is_refused_by_name(chief, why, number):
    text = REFUSED[why][number]
    answer = chief.post("/users", {**ANN, "password_hash": text})
    assert (answer.status, answer.fields) == (400, {"password_hash"})
    (detail,) = answer.error["details"]
    assert ("would take too much time" in detail["message"]) == (why == "too long")


def test_hash_at_the_cost_that_its_library_chooses_is_taken():
    argon2, scrypt = hashers.Argon2PasswordHasher, hashers.ScryptPasswordHasher
    for text in (
        f"$argon2id$v=19$m={argon2.memory_cost},t={argon2.time_cost},p={argon2.parallelism}${SALT}${DERIVED}",
        f"$2b${hashers.BCryptSHA256PasswordHasher.rounds}$" + "a" * 53,
        f"pbkdf2_sha256${hashers.PBKDF2PasswordHasher.iterations}${SALT}${DERIVED}=",
        f"pbkdf2_sha1${hashers.PBKDF2SHA1PasswordHasher.iterations}${SALT}${'A' * 27}=",
        f"scrypt${scrypt.work_factor}${SALT}${scrypt.block_size}${scrypt.parallelism}${'A' * 86}==",
        f"scrypt:32768:8:1${SALT}${'ab' * 64}",
    ):
        assert parse_password_hash(text)


@pytest.mark.parametrize("value", [None, 5, ["x"]])
def test_hash_of_another_type_is_refused(chief, value):
    assert chief.post("/users", {**ANN, "password_hash": value}).fields == {"password_hash"}


def test_hash_goes_with_a_new_user_and_without_a_password(chief, make_user):
    given = {"password_hash": HASHES["bcrypt"]}
    assert chief.post("/users", {**ANN, **given, "password": PASSWORD}).fields == {"password_hash"}
    assert chief.patch(f"/users/{make_user().pk}", given).fields == {"password_hash"}
    # No hash is made of them: as many as there may be lines.
    lines = [{"name": "N", "email": f"n{number}@example.com", **given} for number in range(50)]
    assert send_lines(chief, *lines).status == 201
    assert with_password(User(email="n49@example.com")).get("/api/protected").status == 200
    assert send_lines(chief, {**ANN, "password_hash": "x"}).fields == {"lines[1].password_hash"}


def test_password_that_was_changed_during_its_check_is_wrong(chief, monkeypatch):
    chief.post("/users", {**ANN, "password_hash": HASHES["bcrypt"]})
    changed = make_password("four other words instead")

    def change(password):
        User.objects.filter(email=ANN["email"]).update(password=changed)
        return make_password(password)

    monkeypatch.setattr("accounts.passwords.make_password", change)
    assert with_password(User(email=ANN["email"])).get("/api/protected").status == 401
    assert User.objects.get(email=ANN["email"]).password == changed


def test_refusal_takes_the_same_time_whoever_it_is_for(chief, make_user, settings, monkeypatch):
    settings.RATE_LIMIT_LOGIN_ACCOUNT = settings.RATE_LIMIT_LOGIN_ADDRESS = 0
    make_user(email="native@example.com", password=PASSWORD)
    assert chief.post("/users", {**ANN, "password_hash": HASHES["bcrypt"]}).status == 201
    # More than the check of any hash here takes.
    monkeypatch.setattr(REFUSAL, 0.3)
    for email in ("native@example.com", "nobody@example.com", ANN["email"]):
        began = time.monotonic()
        assert Caller().post("/api/login", {"email": email, "password": "wrong"}).status == 401
        assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("text", HASHES.values(), ids=HASHES)
def test_what_one_service_stores_another_one_takes(text):
    stored = parse_password_hash(text)
    assert parse_password_hash(stored) == stored
