"""Many uses of one code or one refresh token at once: one success, the others refused, nothing left half done."""

from __future__ import annotations

from functools import partial

import pytest
from oauth2_provider.models import get_access_token_model, get_refresh_token_model

from tests.accounts.oauth.actors import Person, bearer, register

USES = 20


@pytest.fixture(autouse=True)
def no_limits(settings):
    settings.RATE_LIMIT_LOGIN_ACCOUNT = settings.RATE_LIMIT_LOGIN_ADDRESS = 0


@pytest.fixture
def person(at_once, make_user):
    return Person(make_user())


def check(client, answers):
    """Exactly one got tokens; and since the others presented what was used, those are ended."""
    assert sorted(answer.status for answer in answers) == [200] + [400] * (len(answers) - 1), answers
    assert {answer.body["error"] for answer in answers if answer.status == 400} == {"invalid_grant"}
    (given,) = (answer.body for answer in answers if answer.status == 200)
    assert bearer(given["access_token"]).get("/api/protected").status == 401
    assert client.refresh(given["refresh_token"]).body["error"] == "invalid_grant"
    assert not get_access_token_model().objects.exists()


def test_one_of_many_uses_of_a_code_gets_tokens(at_once, person):
    client = register()
    code = person.code(client)
    answers = at_once(partial(client.exchange, code) for _ in range(USES))
    check(client, answers)
    assert get_refresh_token_model().objects.count() == 1


def test_one_of_many_uses_of_a_refresh_token_gets_tokens(at_once, person):
    client = register()
    token = person.tokens(client)["refresh_token"]
    check(client, at_once(partial(client.refresh, token) for _ in range(USES)))
    assert get_refresh_token_model().objects.count() == 2


def test_a_grant_that_ends_while_it_is_refreshed_is_over(at_once, person):
    client = register()
    for _ in range(5):
        tokens, code = person.tokens(client), person.code(client)
        refreshed, exchanged, ended = at_once(
            [
                partial(client.refresh, tokens["refresh_token"]),
                partial(client.exchange, code),
                partial(person.browser.post, "/oauth/grants", {"client_id": client.client_id}),
            ]
        )
        assert ended.status_code == 302
        for answer in (refreshed, exchanged):
            assert answer.status in {200, 400}, answer
            if answer.status == 200:
                assert bearer(answer.body["access_token"]).get("/api/protected").status == 401
                assert client.refresh(answer.body["refresh_token"]).status == 400
