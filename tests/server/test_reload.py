"""A service that is replaced, and told to end while the new one is tried."""

import os
import signal
import subprocess

import pytest

from config.server.reload import ENDING, Predecessor, reload


def test_signal_to_end_that_comes_during_the_trial_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0))
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("The service was replaced."))
    reload(Predecessor([], [], ""), {}, lambda: True)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []).isdisjoint(ENDING)
