"""How many requests a minute are answered, and what each answer tells of it."""

import pytest

from accounts.services import create_api_key
from config.models import AuditEvent, Counter
from orders.models import Order
from tests.accounts.oauth.actors import register
from tests.api.limits.quotas import is_counted, quota_of
from tests.api.wire import send
from tests.conftest import PASSWORD, Caller, with_bearer_of, with_key, with_password

pytestmark = pytest.mark.usefixtures("one_minute")
WRONG_KEY = {"X-API-Key": "wrong"}


in_redis_too = pytest.mark.parametrize("get_counts", ["postgresql", "redis"], indirect=True)


@pytest.fixture(autouse=True)
def get_counts(request, settings, db):
    """What counts, with low limits; gives the present counts by their keys."""
    settings.RATE_LIMIT_PRINCIPAL, settings.RATE_LIMIT_ANONYMOUS = 5, 3
    if getattr(request, "param", "postgresql") == "redis":
        return request.getfixturevalue("counted_in_redis").get_counts
    return lambda: dict(Counter.objects.values_list("key", "count"))


@pytest.fixture
def proxied(settings):
    settings.TRUSTED_PROXIES = 1


def remaining(answers):
    return [quota_of(answer).remaining for answer in answers]


@in_redis_too
def test_answer_tells_policy_rest_and_seconds(user):
    answers = [user.get("/users") for _ in range(6)]
    assert [answer.status for answer in answers] == [200] * 5 + [429]
    assert remaining(answers) == [4, 3, 2, 1, 0, 0]
    assert answers[0].headers["RateLimit-Policy"] == '"principal";q=5;w=60'
    assert answers[0].headers["RateLimit"].startswith('"principal";r=4;t=')
    assert all(1 <= quota_of(answer).reset <= 60 for answer in answers)
    assert answers[-1].code == "RATE_LIMITED"
    assert int(answers[-1].headers["Retry-After"]) == pytest.approx(quota_of(answers[-1]).reset, abs=1)


def test_user_over_all_credentials_has_one_quota(make_user):
    person = make_user(password=PASSWORD)
    credentials = [with_key(person), with_key(person), with_password(person), with_bearer_of(person)]
    assert remaining(caller.get("/users") for caller in credentials) == [4, 3, 2, 1]
    key = create_api_key(person, name="query", scopes=None)[1]
    assert remaining([Caller().get(f"/users?api_key={key}")]) == [0]
    assert {caller.get("/users").status for caller in credentials} == {429}


@in_redis_too
def test_quotas_of_users_and_addresses_are_apart(user, other, nobody):
    assert [user.get("/users").status for _ in range(6)] == [200] * 5 + [429]
    assert quota_of(other.get("/users")).remaining == 4
    found = quota_of(nobody.get("/"))
    assert (found.policy, found.limit, found.window, found.remaining) == ("anonymous", 3, 60, 2)


@in_redis_too
def test_bad_credential_counts_for_its_address_and_never_for_the_user_it_names(user, make_user):
    person = make_user(password=PASSWORD)
    revoked = with_key(person)
    person.api_keys.update(revoked_at="2026-01-01T00:00Z")
    wrong = [with_password(person, "wrong"), revoked, Caller(headers={"Authorization": "Bearer a.b.c"})]
    answers = [caller.get("/users") for caller in wrong]
    assert [answer.status for answer in answers] == [401] * 3
    assert [quota_of(answer).policy for answer in answers] == ["anonymous"] * 3
    assert remaining(answers) == [2, 1, 0]
    over = Caller(headers=WRONG_KEY).get("/users")
    assert (over.status, over.code, quota_of(over).policy) == (429, "RATE_LIMITED", "anonymous")
    assert "WWW-Authenticate" not in over.headers
    assert quota_of(with_bearer_of(person).get("/users")).remaining == 4
    assert quota_of(user.get("/users")).remaining == 4


@pytest.mark.parametrize("path", ["/users", "/nowhere"])
@pytest.mark.parametrize("headers", [WRONG_KEY, {"Authorization": "Basic YUBleGFtcGxlLmNvbTp3"}], ids=["key", "Basic"])
def test_bad_credential_over_the_limit_is_refused_and_writes_nothing(settings, path, headers):
    settings.RATE_LIMIT_LOGIN_ACCOUNT = 1
    caller = Caller(headers=headers)
    for _ in range(3):
        caller.get(path)
    recorded = AuditEvent.objects.count()
    assert recorded
    over = [caller.get(path) for _ in range(3)]
    assert [(answer.status, quota_of(answer).policy) for answer in over] == [(429, "anonymous")] * 3
    assert AuditEvent.objects.count() == recorded


def test_two_credentials_count_for_the_address(user):
    answer = user.get("/users?api_key=another")
    assert (answer.code, quota_of(answer).policy) == ("CREDENTIAL_CONFLICT", "anonymous")


def test_user_over_the_limit_is_refused_before_anything_is_done(user):
    for _ in range(5):
        user.get("/users")
    answer = user.post("/orders", {"item": "Tea", "qty": 1})
    assert (answer.status, answer.code) == (429, "RATE_LIMITED")
    assert not Order.objects.exists()


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {}, 200),
        ("GET", "/api", {}, 200),
        ("GET", "/api/v1", {}, 200),
        ("HEAD", "/users", {}, 200),
        ("OPTIONS", "/users", {}, 200),
        ("GET", "/users?page=0", {}, 400),
        ("GET", "/users/0", {}, 404),
        ("GET", "/api/nowhere", {}, 404),
        ("GET", "/nowhere", {}, 404),
        ("GET", "/users/", {}, 308),
        ("POST", "/api/v1/users/1/", {}, 308),
        ("BREW", "/users", {}, 405),
        ("GET", "/users", {"Accept": "image/png"}, 406),
        ("GET", "/api/v9/users", {}, 404),
        ("POST", "/orders", {}, 400),
        ("GET", "/users", {"Accept": "text/html"}, 200),
    ],
)
def test_every_answer_under_the_prefixes_counts_once_for_its_user(user, method, path, headers, status):
    answers = [send(method, path, headers={**user.headers, **headers}) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [status] * 5 + [429]
    assert [quota_of(answer).policy for answer in answers] == ["principal"] * 6
    assert remaining(answers) == [4, 3, 2, 1, 0, 0]
    assert answers[-1].headers["Retry-After"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/users", 401),
        ("OPTIONS", "/users", 401),
        ("GET", "/nowhere", 404),
        ("GET", "/api/nowhere/", 308),
        ("POST", "/api/login", 400),
        ("POST", "/api/logout", 400),
        ("POST", "/oauth/token", 400),
        ("POST", "/oauth/revoke", 400),
        ("GET", "/oauth/introspect", 405),
        ("GET", "/oauth/nowhere", 404),
        ("GET", "/oauth/grants", 302),
        ("GET", "/oauth/authorize", 400),
        ("POST", "/oauth/authorize", 403),
        ("GET", "/.well-known/oauth-authorization-server", 200),
    ],
)
def test_every_answer_without_a_credential_counts_once_for_its_address(method, path, status):
    answers = [send(method, path) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [status] * 3 + [429]
    assert [quota_of(answer).policy for answer in answers] == ["anonymous"] * 4
    assert remaining(answers) == [2, 1, 0, 0]
    assert answers[-1].headers["Retry-After"]


@in_redis_too
def test_what_is_no_part_of_the_api_costs_nothing(get_counts):
    paths = (
        *("/docs", "/openapi.json", "/health/live", "/health/ready", "/metrics", "/static/accounts/page.css"),
        *("/static/none.css", "/favicon.ico", "/admin/", "/admin/login/", "/session/login"),
    )
    answers = [send("HEAD", path) for path in paths for _ in range(5)]
    assert not any(is_counted(answer) or answer.status_code == 429 for answer in answers)
    assert not get_counts()


def test_limit_is_told_in_the_words_of_oauth():
    for _ in range(3):
        send("POST", "/oauth/token")
    response = send("POST", "/oauth/token")
    assert (response.status_code, response.json()["error"]) == (429, "temporarily_unavailable")


def test_oauth_client_is_no_user(make_user):
    robot = register(make_user("admin"), grant="client-credentials", redirect_uris="")
    granted = robot.act()
    assert (granted.status, quota_of(granted).policy) == (200, "anonymous")
    bearer = Caller(headers={"Authorization": f"Bearer {granted.body['access_token']}"})
    assert quota_of(bearer.get("/users")).policy == "principal"


def test_session_counts_for_its_user(client, make_user):
    client.force_login(make_user())
    assert quota_of(client.get("/users")).policy == "principal"
    assert quota_of(client.get("/oauth/grants")).remaining == 3


def test_refusal_of_a_guess_carries_the_quota(owner_of_password, settings):
    settings.RATE_LIMIT_LOGIN_ACCOUNT = 1
    body = {"email": owner_of_password.email, "password": "wrong"}
    answers = [Caller().post("/api/login", body) for _ in range(2)]
    assert [answer.status for answer in answers] == [401, 429]
    assert remaining(answers) == [2, 1]
    assert answers[-1].headers["Retry-After"]


@pytest.fixture
def owner_of_password(make_user):
    return make_user(password=PASSWORD)


@in_redis_too
@pytest.mark.parametrize("addresses", [["192.0.2.7"] * 4, ["2001:db8:1:2::1", "2001:db8:1:2:ffff::2"] * 2])
def test_address_is_the_one_that_trusted_proxies_tell(proxied, nobody, addresses):
    answers = [nobody.get("/", x_forwarded_for=f"203.0.113.9, {address}") for address in addresses]
    assert [answer.status for answer in answers] == [200] * 3 + [429]
    for other in ("192.0.2.8", "2001:db8:1:3::1", "203.0.113.9"):
        assert nobody.get("/", x_forwarded_for=other).status == 200


def test_address_is_not_the_clients_to_choose(nobody):
    answers = [nobody.get("/", x_forwarded_for=f"192.0.2.{number}").status for number in range(4)]
    assert answers == [200] * 3 + [429]


@in_redis_too
def test_limit_of_0_is_none_and_tells_nothing(user, nobody, settings, get_counts):
    settings.RATE_LIMIT_PRINCIPAL = settings.RATE_LIMIT_ANONYMOUS = 0
    answers = [caller.get("/") for caller in (user, nobody) for _ in range(7)]
    assert {answer.status for answer in answers} == {200}
    assert not any(is_counted(answer) for answer in answers)
    assert not get_counts()


def test_error_of_the_limit_is_asked_for_as_problem_details(nobody):
    for _ in range(3):
        nobody.get("/")
    answer = nobody.get("/nowhere", accept="application/problem+json")
    assert (answer.status, answer.body["code"]) == (429, "RATE_LIMITED")
