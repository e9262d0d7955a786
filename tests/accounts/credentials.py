"""Every credential of the contract, got as its holder gets it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from accounts.services import create_api_key
from config.api.principal import SCOPES
from tests.accounts.oauth.actors import Person, Registered, bearer, register
from tests.conftest import PASSWORD, Caller, new_client, with_key, with_password

# What is made from the password, and so may do what the password's owner alone should do.
BY_PASSWORD = ("JWT", "Basic", "session")


def with_key_in_query(user: Any, scopes: Iterable[str] = SCOPES) -> Caller:
    return Caller(user, query=f"api_key={create_api_key(user, name='test', scopes=scopes)[1]}")


def with_login(user: Any) -> Caller:
    answer = Caller().post("/api/login", {"email": user.email, "password": PASSWORD})
    return bearer(answer.data["access_token"], user)


def with_grant(person: Person, application: Registered, scopes: Iterable[str] = SCOPES) -> Caller:
    """What a person has granted to an application by the code grant."""
    return bearer(person.tokens(application, scope=" ".join(scopes))["access_token"], person.user)


def with_client_credentials(application: Registered, scopes: Iterable[str] = SCOPES) -> Caller:
    return bearer(application.act(" ".join(scopes)).body["access_token"], application.row.owner)


def with_session(user: Any) -> Caller:
    """Signs in as a browser does. The caller sends the CSRF token along, which reading does not need."""
    browser = new_client()
    browser.get("/session/login")
    form = {"username": user.email, "password": PASSWORD, "csrfmiddlewaretoken": browser.cookies["csrftoken"].value}
    assert browser.post("/session/login", form).status_code == 302
    cookies = "; ".join(f"{cookie.key}={cookie.value}" for cookie in browser.cookies.values())
    return Caller(user, {"Cookie": cookies, "X-CSRFToken": browser.cookies["csrftoken"].value})


def reader() -> Registered:
    """An application that may be granted everything."""
    return register(allowed_scopes=list(SCOPES))


def robot(owner: Any) -> Registered:
    """An application that acts for its owner, and may do everything."""
    return register(owner, grant="client-credentials", redirect_uris="", allowed_scopes=list(SCOPES))


def credentials_of(user: Any, application: Registered, machine: Registered) -> dict[str, Caller]:
    """One credential of every kind, with all scopes, of a user whose password is PASSWORD.

    Args:
        application: of the code grant.
        machine: of the client-credentials grant, owned by the user.
    """
    return {
        "API key": with_key(user),
        "API key in the query": with_key_in_query(user),
        "JWT": with_login(user),
        "OAuth code": with_grant(Person(user), application),
        "OAuth client credentials": with_client_credentials(machine),
        "Basic": with_password(user),
        "session": with_session(user),
    }
