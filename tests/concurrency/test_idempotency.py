"""Many requests with one key: one effect, one answer, and nobody waits."""

from functools import partial

from config.models import IdempotencyRecord
from payments.models import Payment
from tests.conftest import with_key

CLIENTS = 200
ROUNDS = 15


def test_of_many_clients_with_one_key_one_pays_and_all_get_its_answer(at_once, make_user):
    caller = with_key(make_user())

    answers = at_once([partial(caller.post, "/payments", {"amount": 5}, idempotency_key="k")] * CLIENTS)
    assert {answer.status for answer in answers} <= {201, 409}
    created = [answer for answer in answers if answer.status == 201]
    assert len({(answer.response.content, answer.headers["Location"]) for answer in created}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in created) == 1
    assert {answer.code for answer in answers if answer.status == 409} <= {"IDEMPOTENCY_IN_PROGRESS"}
    assert Payment.objects.count() == 1
    assert IdempotencyRecord.objects.get().replays == len(created) - 1


def test_answers_stored_beside_a_removal_go_with_the_user(at_once, make_user):
    admin = with_key(make_user("admin"))
    for _ in range(ROUNDS):
        leaving = with_key(make_user())
        answers = at_once(
            [
                *(partial(leaving.post, "/payments", {"amount": 5}, idempotency_key=key) for key in "ab"),
                partial(admin.delete, f"/users/{leaving.user.pk}"),
            ]
        )
        assert answers[-1].status == 204
        assert {answer.status for answer in answers[:-1]} <= {201, 401, 404}
        assert not IdempotencyRecord.objects.filter(user=leaving.user).exists()
