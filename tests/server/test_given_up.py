"""When requests wait for a database no longer."""

from time import monotonic

from config.postgresql.replicas.watch import Look, Replicas
from config.server import application


def test_replica_that_stands_in_for_the_primary_is_not_given_up(monkeypatch):
    replicas = Replicas(["one", "two"], max_lag=1.0)
    monkeypatch.setattr(application, "get_replicas", lambda: replicas)
    replicas._looks = [Look(monotonic() - 60, "00000001", 7)]
    for alias in ("one", "two"):
        replicas.leave(alias, "It was silent.")
    replicas._replicas["two"].follow(7, replicas._looks)
    assert replicas.get_stand_in() == "two"
    assert [application._is_given_up(alias) for alias in ("one", "two")] == [True, False]
