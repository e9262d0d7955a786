"""Simultaneous uses of one refresh token, and simultaneous guesses."""

from __future__ import annotations

from collections import Counter
from functools import partial

from django.db import connection

from accounts.models import LoginSession
from tests.accounts.conftest import WRONG, log_in, refresh, refused
from tests.accounts.oauth.actors import bearer
from tests.conftest import PASSWORD, wait_until_somebody_waits_for, with_password


def test_of_twenty_simultaneous_uses_of_a_refresh_token_one_is_answered(at_once, make_user):
    owner = make_user(password=PASSWORD)
    for _ in range(3):
        token = log_in(owner.email).data["refresh_token"]
        answers = at_once(partial(refresh, token) for _ in range(20))
        assert sorted(answer.status for answer in answers) == [200] + [401] * 19
        (new,) = (answer.data for answer in answers if answer.status == 200)
        assert bearer(new["access_token"]).get("/api/protected").status == 200
        assert refresh(new["refresh_token"]).status == 200


def test_session_is_over_after_simultaneous_reuse_and_refresh(at_once, make_user):
    owner = make_user(password=PASSWORD)
    for _ in range(5):
        first = log_in(owner.email).data["refresh_token"]
        second = refresh(first).data["refresh_token"]
        third = refresh(second).data
        answers = at_once(partial(refresh, token) for token in (first, third["refresh_token"]))
        assert answers[0].status == 401
        assert answers[1].status in {200, 401}
        assert not LoginSession.objects.filter(ended_at=None).exists()
        assert bearer(third["access_token"]).get("/api/protected").status == 401


def test_of_forty_simultaneous_wrong_passwords_at_several_doors_ten_are_told_so(at_once, make_user, one_minute):
    owner = make_user(password=PASSWORD)
    basic = with_password(owner, WRONG)
    answers = at_once([partial(log_in, owner.email, WRONG), partial(basic.get, "/users")] * 20)
    assert Counter(answer.status for answer in answers) == {401: 10, 429: 30}


def test_session_that_ends_while_it_is_refreshed_gets_no_pair(at_once, elsewhere, make_user):
    """Its user is locked first, as by whoever ends it: in another order both would wait for each other."""
    owner = make_user(password=PASSWORD)
    token = log_in(owner.email).data["refresh_token"]
    elsewhere.execute("SELECT 1 FROM users_user WHERE id = %s FOR UPDATE", [owner.pk])

    def end() -> None:
        wait_until_somebody_waits_for(elsewhere)
        elsewhere.execute("SELECT 1 FROM accounts_loginsession FOR UPDATE NOWAIT")
        elsewhere.execute("UPDATE accounts_loginsession SET ended_at = now()")
        elsewhere.commit()

    answer, _ = at_once([partial(refresh, token), end])
    assert refused(answer)


def test_token_is_not_used_up_by_a_refresh_that_cannot_be_noted(transactional_db, make_user):
    token = log_in(make_user(password=PASSWORD).email).data["refresh_token"]
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE config_auditevent ADD CONSTRAINT away CHECK (event <> 'token.refreshed')")
        try:
            assert refresh(token).status == 500
        finally:
            cursor.execute("ALTER TABLE config_auditevent DROP CONSTRAINT away")
    assert refresh(token).status == 200
