"""The drill itself, with few users."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection

from tests.restore import drill
from tests.service import open_folder


def test_lost_database_is_restored_to_the_moment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(drill, "SECONDS_OF_WRITES", 1)
    with open_folder() as folder:
        assert drill.run(100, folder)
    assert "different: none" in capsys.readouterr().out


def test_row_that_differs_is_found(transactional_db: None, make_user: Callable[..., Any]) -> None:
    user = make_user()
    info = connection.get_connection_params()
    url = f"postgresql://{info['user']}@{quote(info['host'], safe='')}/{info['dbname']}"
    before = drill.compute_hashes(url)
    assert before["users_user"][0] == 1
    assert drill.compute_hashes(url) == before
    type(user).objects.filter(pk=user.pk).update(name="Another name")
    after = drill.compute_hashes(url)
    changed = {table for table in after if after[table] != before[table]}
    # Its partition is named by the week.
    assert {table.rstrip("_0123456789") for table in changed} == {"users_user", "users_userword", "config_event"}
