from __future__ import annotations

from typing import Any

import pytest

from tests.accounts.oauth.actors import Person, Registered, register


@pytest.fixture
def person(make_user: Any) -> Person:
    return Person(make_user(name="Pia Person"))


@pytest.fixture
def client(db: None) -> Registered:
    """A confidential application of the code grant."""
    return register()


@pytest.fixture
def public(db: None) -> Registered:
    return register(public=True, name="App")


@pytest.fixture
def machine(make_user: Any) -> Registered:
    """An application that acts for its owner."""
    return register(make_user(name="Olga Owner"), grant="client-credentials", redirect_uris="")
