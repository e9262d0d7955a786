"""Two requests with many lines that meet: one email to a user, no deadlock, and a key that is used once."""

from __future__ import annotations

import pytest

from config.models import IdempotencyRecord
from tests.api.writing.test_bulk import person, send
from tests.conftest import Caller, find_wrong_counts
from users.models import User

pytestmark = pytest.mark.django_db(transaction=True)


def added() -> list[str]:
    return sorted(User.objects.filter(email__endswith="example.org").values_list("email", flat=True))


def test_of_two_with_the_same_emails_one_adds_all(at_once, admin: Caller) -> None:
    lines = [person(number) for number in range(100)]
    answers = at_once([lambda: send(admin, "/users", lines), lambda: send(admin, "/users", lines[::-1])])
    assert sorted(answer.status for answer in answers) == [201, 400]
    refused = next(answer for answer in answers if answer.status == 400)
    assert refused.fields == {f"lines[{number}].email" for number in range(1, 101)}
    assert len(added()) == 100
    assert find_wrong_counts() == []


def test_partial_ones_share_the_emails(at_once, admin: Caller) -> None:
    lines = [person(number) for number in range(60)]
    batches = [lines[:40], lines[20:][::-1], lines[10:50]]
    answers = at_once([lambda batch=batch: send(admin, "/users?partial=true", batch) for batch in batches])
    assert {answer.status for answer in answers} == {207}
    assert sum(answer.meta["created"] for answer in answers) == 60 == len(added())
    statuses = [item["status"] for answer in answers for item in answer.data]
    assert (statuses.count(201), statuses.count(409)) == (60, 60)
    assert find_wrong_counts() == []


def test_single_one_beside_many(at_once, admin: Caller) -> None:
    lines = [person(number) for number in range(50)]
    many, single = at_once([lambda: send(admin, "/users", lines), lambda: admin.post("/api/v2/users", person(25))])
    assert {many.status, single.status} in ({201, 409}, {400, 201})
    assert len(added()) == (50 if many.status == 201 else 1)


def test_key_is_used_once(at_once, admin: Caller) -> None:
    lines = [{"item": "Tea", "qty": 1}] * 50
    answers = at_once([lambda: send(admin, "/orders", lines, Idempotency_Key="k")] * 4)
    assert {answer.status for answer in answers} <= {201, 409}
    made = [answer for answer in answers if answer.status == 201]
    assert len({answer.response.content for answer in made}) == 1
    assert IdempotencyRecord.objects.count() == 1
    assert admin.get("/api/v2/orders?page=1").meta["total"] == 50
    again = send(admin, "/orders", lines, Idempotency_Key="k")
    assert again.response.content == made[0].response.content


def test_user_that_is_being_removed_gets_no_rows(at_once, admin: Caller, user: Caller) -> None:
    lines = [{"item": "Tea", "qty": 1, "user_id": user.user.pk}] * 20
    many, removed = at_once(
        [
            lambda: send(admin, "/orders", lines),
            lambda: admin.delete(f"/api/v2/users/{user.user.pk}"),
        ]
    )
    assert (many.status, removed.status) in {(201, 204), (400, 204)}
    assert find_wrong_counts() == []
