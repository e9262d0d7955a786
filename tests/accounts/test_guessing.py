"""The limits on wrong passwords, which every door counts together."""

import itertools

import pytest
from django.test import Client

from tests.accounts.conftest import WRONG, log_in
from tests.conftest import PASSWORD, Caller, with_bearer_of, with_password
from users.models import User

pytestmark = pytest.mark.usefixtures("one_minute")

NEW = "four other words instead"


@pytest.fixture
def proxied(settings):
    settings.TRUSTED_PROXIES = 1


def by_login(owner, password):
    return log_in(owner.email, password).status


def by_basic(owner, password):
    return with_password(owner, password).get("/users").status


def by_current_password(owner, password):
    caller = with_bearer_of(owner)
    status = caller.patch(f"/users/{owner.pk}", {"password": "short", "current_password": password}).status
    return {400: 401}.get(status, status)


def by_the_admin(owner, password):
    answer = Client().post("/admin/login/?next=/admin/", {"username": owner.email, "password": password})
    return {200: 401, 302: 200}.get(answer.status_code, answer.status_code)


def by_the_sign_in_page(owner, password):
    answer = Client().post("/session/login", {"username": owner.email, "password": password})
    return {200: 401, 302: 200}.get(answer.status_code, answer.status_code)


def by_the_admins_password_page(owner, password):
    client = Client()
    client.force_login(owner)
    body = {"old_password": password, "new_password1": NEW, "new_password2": NEW}
    answer = client.post("/admin/password_change/", body)
    return {200: 401, 302: 200}.get(answer.status_code, answer.status_code)


DOORS = [by_login, by_basic, by_current_password, by_the_sign_in_page, by_the_admin, by_the_admins_password_page]


@pytest.fixture
def staff(make_user):
    return make_user("support", email="Staff@example.com", password=PASSWORD)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_eleventh_wrong_password_of_an_account_is_429_and_then_the_right_one_too(staff, door):
    assert [door(staff, WRONG) for _ in range(10)] == [401] * 10
    assert [door(staff, WRONG), door(staff, PASSWORD)] == [429, 429]


def test_doors_count_together(staff):
    doors = itertools.cycle(DOORS)
    assert [next(doors)(staff, WRONG) for _ in range(10)] == [401] * 10
    assert [door(staff, PASSWORD) for door in DOORS] == [429] * len(DOORS)


@pytest.mark.parametrize("door", [by_login, by_basic], ids=lambda door: door.__name__)
def test_right_passwords_never_count(staff, door):
    assert [door(staff, WRONG) for _ in range(9)] == [401] * 9
    assert [door(staff, PASSWORD) for _ in range(15)] == [200] * 15
    assert [door(staff, WRONG) for _ in range(2)] == [401, 429]


def test_right_current_password_beside_a_weak_new_one_does_not_count(staff):
    caller = with_bearer_of(staff)
    for _ in range(12):
        answer = caller.patch(f"/users/{staff.pk}", {"password": "short", "current_password": PASSWORD})
        assert (answer.status, answer.fields) == (400, {"password"})
    assert by_login(staff, WRONG) == 401


def test_limit_is_told_with_the_seconds_to_wait(owner):
    answers = [log_in(owner.email, WRONG) for _ in range(11)]
    assert [answer.code for answer in answers] == ["INVALID_CREDENTIALS"] * 10 + ["RATE_LIMITED"]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
    assert answers[-1].headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("page", ["/admin/login/", "/admin/password_change/"])
def test_limit_of_the_admin_is_told_in_the_words_of_the_api(staff, page):
    assert [by_login(staff, WRONG) for _ in range(10)] == [401] * 10
    client = Client()
    if page != "/admin/login/":
        client.force_login(staff)
    body = {"username": staff.email, "password": PASSWORD, "old_password": PASSWORD}
    answer = client.post(page, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "RATE_LIMITED")
    assert 1 <= int(answer["Retry-After"]) <= 60


def test_account_is_one_whatever_the_letters_that_fold_into_its_email(make_user):
    owner = make_user(email="kim.lie@example.com", password=PASSWORD)
    spellings = (
        "kim.lie@example.com",
        "K\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}m.lie@example.com",
        "\N{KELVIN SIGN}im.lie@example.com",
    )
    assert {log_in(email).status for email in spellings} == {200}
    assert [log_in(spellings[number % 3], WRONG).status for number in range(11)] == [401] * 10 + [429]
    assert by_basic(owner, PASSWORD) == 429


@pytest.mark.parametrize("is_there", [True, False])
def test_account_that_is_none_is_limited_alike(make_user, is_there):
    spellings = ("x@exit.example", "X@ex\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}t.example", "x@ex\uff49t.example")
    if is_there:
        make_user(email=spellings[0])
    tries = [log_in(spellings[number % 3], WRONG).status for number in range(11)]
    assert tries == [401] * 10 + [429]


def test_limit_of_one_account_leaves_the_others(owner, staff):
    assert [by_login(owner, WRONG) for _ in range(11)] == [401] * 10 + [429]
    assert by_login(staff, PASSWORD) == 200


@pytest.mark.parametrize(
    "addresses", [["192.0.2.7", "192.0.2.7:52011"], ["2001:db8:1:2::1", "[2001:db8:1:2:ffff::2]:443"]]
)
def test_thirty_wrong_passwords_an_address_whatever_the_account(owner, proxied, addresses):
    sources = itertools.cycle(addresses)
    tries = [log_in(f"u{number}@example.com", x_forwarded_for=next(sources)).status for number in range(31)]
    assert tries == [401] * 30 + [429]
    assert log_in(owner.email, x_forwarded_for=addresses[0]).status == 429
    for other in ("192.0.2.8", "2001:db8:1:3::1"):
        assert log_in(owner.email, x_forwarded_for=other).status == 200


def test_stranger_locks_nobody_out_from_another_address(owner, proxied):
    assert [log_in(owner.email, WRONG, x_forwarded_for="192.0.2.7").status for _ in range(11)] == [401] * 10 + [429]
    assert log_in(owner.email, x_forwarded_for="192.0.2.8").status == 200


def test_hundred_wrong_passwords_an_account_over_all_addresses(owner, proxied, settings):
    settings.RATE_LIMIT_LOGIN_ACCOUNT = 2
    tries = [log_in(owner.email, WRONG, x_forwarded_for=f"192.0.2.{number}").status for number in range(21)]
    assert tries == [401] * 20 + [429]
    assert log_in(owner.email, x_forwarded_for="192.0.2.99").status == 429


def test_limit_of_0_is_none(owner, settings):
    settings.RATE_LIMIT_LOGIN_ACCOUNT = settings.RATE_LIMIT_LOGIN_ADDRESS = 0
    assert {log_in(owner.email, WRONG).status for _ in range(35)} == {401}


def test_other_credentials_of_a_limited_account_keep_working(owner, pair, user):
    assert [by_login(owner, WRONG) for _ in range(11)] == [401] * 10 + [429]
    assert Caller(headers={"Authorization": f"Bearer {pair['access_token']}"}).get("/users").status == 200
    assert user.get("/users").status == 200


def test_remembered_password_is_no_way_around_the_limit(owner):
    assert by_basic(owner, PASSWORD) == 200
    assert [by_basic(owner, WRONG) for _ in range(10)] == [401] * 10
    assert by_basic(owner, PASSWORD) == 429


def test_what_is_no_pair_does_not_count(owner):
    for _ in range(12):
        assert Caller(headers={"Authorization": "Basic !"}).get("/users").status == 401
        assert Caller().post("/api/login", {"email": owner.email}).status == 400
    assert by_login(owner, PASSWORD) == 200


def test_wrong_current_password_changes_nothing_and_counts(staff):
    caller = with_bearer_of(staff)
    body = {"name": "New", "password": NEW, "current_password": WRONG}
    assert [caller.patch(f"/users/{staff.pk}", body).status for _ in range(11)] == [400] * 10 + [429]
    assert User.objects.get(pk=staff.pk).name == staff.name
