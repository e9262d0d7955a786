import pytest

from config.api.versions.usage import uses
from config.models import VersionUse
from tests.conftest import Caller, with_bearer_of, with_key


@pytest.fixture(autouse=True)
def nothing_counted(db):
    """Writes down what earlier tests left, so that each begins at nothing."""
    uses.write()
    VersionUse.objects.all().delete()


def written():
    uses.write()
    return {(use.version, use.user_id, use.kind, use.credential): use.count for use in VersionUse.objects.all()}


def test_requests_are_counted_by_version_and_credential(make_user, nobody):
    user = make_user()
    key, other_key, bearer = with_key(user), with_key(user), with_bearer_of(user)
    for _ in range(3):
        key.get("/users")
    key.get("/api/v2/users")
    other_key.get("/users?version=2")
    bearer.get("/api/v1/nothing/here")
    bearer.get("/api/v1/users/0")
    nobody.get("/api/v2/users")
    Caller(headers={"X-API-Key": "wrong"}).get("/api/v1/users")
    first, second = user.api_keys.order_by("id").values_list("prefix", flat=True)
    assert written() == {
        (1, user.pk, "api_key", first): 3,
        (2, user.pk, "api_key", first): 1,
        (2, user.pk, "api_key", second): 1,
        (1, user.pk, "jwt", ""): 1,
        (1, None, "", ""): 2,
        (2, None, "", ""): 1,
    }


def test_what_is_no_request_to_the_api_is_not_counted(nobody):
    for path in ("/health/live", "/openapi.json", "/oauth/token"):
        nobody.get(path)
    assert written() == {}


def test_nothing_is_written_of_a_user_who_was_removed_meanwhile(make_user, admin, nobody):
    user = make_user()
    with_key(user).get("/users")
    nobody.get("/")
    assert admin.delete(f"/users/{user.pk}").status == 204
    assert {user_id for _, user_id, _, _ in written()} == {None, admin.user.pk}


def test_version_that_there_never_was_is_nobodys_use(user):
    for path in ("/api/v9/users", "/users?version=9"):
        assert user.get(path).code == "UNSUPPORTED_VERSION"
    assert written() == {}
