"""Who may do what: sections 4 and 6 of the contract as a table, and the reading of it.

A line is an endpoint, a method, and what a credential needs for it:

* a scope, or `-` where any credential will do;
* `open` where none is needed, though a bad one is refused;
* `public`, where the body is the credential and no other one is looked at.

`POST:role` is a POST whose body sets the role; the bodies are in world.py. `POST:lines` has several in one request, as
NDJSON, of which the last one alone is what the columns say.

Then what is answered: to nobody, and to each role on a row of its own and on another user's (where the address names
no row, on what the body names).

* A status. 403 is FORBIDDEN; a scope that is missing is told before anything else is looked at.
* `in` and `out`: 200, and the row is in the list or is not.
* `*`: with a credential made from the password alone (JWT, Basic, session). Any other gets 403, and out of a list.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

# Has every credential ask on every row, which takes twice as long.
EVERY_COMBINATION = os.environ.get("EVERY_COMBINATION") == "true"

TABLE = """
                                                                      user         support      admin
endpoint                           method          needs           no own   other  own   other  own   other

users                              GET             users:read     401 in    out    in    in     in    in
users                              POST            users:write    401 403   403    403   403    201   201
users                              POST:password   users:write    401 403   403    403   403    201   201
users                              POST:role       users:write    401 403   403    403   403    201*  201*
users                              POST:foreign    users:write    401 403   403    403   403    201   201
users                              POST:hash       users:write    401 403   403    403   403    201*  201*
users                              POST:lines      users:write    401 403   403    403   403    201   201
users                              POST:lines-role users:write    401 403   403    403   403    201*  201*
users/<id>                         GET             users:read     401 200   404    200   200    200   200
users/<id>                         PUT             users:write    401 200   404    200   403    200   200
users/<id>                         PATCH           users:write    401 200   404    200   403    200   200
users/<id>                         PATCH:password  users:write    401 200*  404    200*  403    200*  200*
users/<id>                         PATCH:role      users:write    401 403   404    403   403    200   200*
users/<id>                         PATCH:status    users:write    401 403   404    403   403    200   200
users/<id>                         PATCH:foreign   users:write    401 403   404    403   403    200   200
users/<id>                         DELETE          users:write    401 204   404    204   403    204   204
users/<user_id>/email-verifications POST           users:write    401 202   404    202   403    202   202
users/<user_id>/invitations        POST            users:write    401 403   404    403   403    409   409
users/<user_id>/archive            GET             -              401 200*  404*   200*  403    200*  200*
users/<user_id>/orders             GET             orders:read    401 in    404    in    in     in    in
users/<user_id>/payments           GET             payments:read  401 in    404    in    in     in    in
users/<user_id>/posts              GET             posts:read     401 in    in     in    in     in    in
users/<user_id>/posts              POST            posts:write    401 201   403    201   403    201   201
users/<user_id>/posts              POST:lines      posts:write    401 201   403    201   403    201   201

orders                             GET             orders:read    401 in    out    in    in     in    in
orders                             POST            orders:write   401 201   403    201   403    201   201
orders                             POST:lines      orders:write   401 201   403    201   403    201   201
orders/<id>                        GET             orders:read    401 200   404    200   200    200   200
payments                           GET             payments:read  401 in    out    in    in     in    in
payments                           POST            payments:write 401 201   403    201   403    201   201
payments/<id>                      GET             payments:read  401 200   404    200   200    200   200

posts                              GET             posts:read     401 in    in     in    in     in    in
posts/<id>                         GET             posts:read     401 200   200    200   200    200   200
posts/<id>                         PUT             posts:write    401 200   403    200   403    200   200
posts/<id>                         PATCH           posts:write    401 200   403    200   403    200   200
posts/<id>                         DELETE          posts:write    401 204   403    204   403    204   204
posts/<post_id>/comments           GET             posts:read     401 in    in     in    in     in    in
posts/<post_id>/comments           POST            posts:write    401 201   201    201   201    201   201
comments/<id>                      GET             posts:read     401 200   200    200   200    200   200
comments/<id>                      PUT             posts:write    401 200   403    200   403    200   200
comments/<id>                      PATCH           posts:write    401 200   403    200   403    200   200
comments/<id>                      DELETE          posts:write    401 204   403    204   403    204   204

api-keys                           GET             -              401 in    out    in    out    in    in*
api-keys                           POST            -              401 201*  201*   201*  201*   201*  201*
api-keys/<id>                      GET             -              401 200   404    200   404    200   200*
api-keys/<id>                      DELETE          -              401 204*  404*   204*  404*   204*  204*
api-keys/<api_key_id>/rotations    POST            -              401 201*  404*   201*  404*   201*  403
audit-events                       GET             audit:read     401 403   403    403   403    200   200
events                             GET             events:read    401 200   200    200   200    200   200
webhooks                           GET             webhooks:read  401 in    out    in    out    in    in
webhooks                           POST            webhooks:write 401 201   201    201   201    201   201
webhooks/<id>                      GET             webhooks:read  401 200   404    200   404    200   200
webhooks/<id>                      PATCH           webhooks:write 401 200   404    200   404    200   200
webhooks/<id>                      DELETE          webhooks:write 401 204   404    204   404    204   204
webhooks/<webhook_id>/rotations    POST            webhooks:write 401 201   404    201   404    201   403
webhooks/<webhook_id>/pings        POST            webhooks:write 401 202   404    202   404    202   202
webhooks/<webhook_id>/replays      POST            webhooks:write 401 202   404    202   404    202   202
webhooks/<webhook_id>/deliveries   GET             webhooks:read  401 in    404    in    404    in    in
webhooks/<webhook_id>/deliveries/<id> GET          webhooks:read  401 200   404    200   404    200   200
webhooks/<webhook_id>/deliveries/<delivery_id>/retries POST webhooks:write 401 202 404 202 404 202 202
sessions                           GET             -              401 200*  200*   200*  200*   200*  200*
sessions/<id>                      DELETE          -              401 204*  404*   204*  404*   204*  404*
protected                          GET             -              401 200   200    200   200    200   200
versions                           GET             open           200 200   200    200   200    200   200

login                              POST            public         200 200   200    200   200    200   200
token/refresh                      POST            public         200 200   200    200   200    200   200
logout                             POST            public         204 204   204    204   204    204   204
password-resets                    POST            public         202 202   202    202   202    202   202
password-resets/<token>            POST            public         204 204   204    204   204    204   204
email-verifications/<token>        POST            public         204 204   204    204   204    204   204
"""

# What stands at the root alone, or beside the prefixes. No credential is asked for here but the browser's session,
# or a client's own at the OAuth endpoints: with an API credential, good or bad, the answer is nobody's. The session is
# an administrator's, with the CSRF token; without it a form is refused, which is the 403 of nobody.
OUTSIDE = """
endpoint                                  method  nobody  session

openapi.json                              GET     200     200
docs                                      GET     200     200
docs/guide                                GET     302     302
docs/search.json                          GET     200     200
docs/requests.http                        GET     200     200
docs/postman.json                         GET     200     200
docs/versions                             GET     200     200
docs/<slug:page>                          GET     200     200
health/live                               GET     200     200
health/ready                              GET     200     200
metrics                                   GET     404     404
session/login                             GET     200     302
session/login                             POST    403     302
session/account                           GET     302     200
session/account                           POST    403     302
session/logout                            POST    403     302
session/reset                             GET     200     200
session/reset                             POST    403     200
session/reset/<token>                     GET     404     404
session/reset/<token>                     POST    403     404
session/verify/<token>                    GET     404     404
session/verify/<token>                    POST    403     404
oauth/authorize                           GET     400     400
oauth/authorize                           POST    403     400
oauth/grants                              GET     302     200
oauth/grants                              POST    403     404
oauth/token                               POST    400     400
oauth/revoke                              POST    400     400
oauth/introspect                          POST    401     401
.well-known/oauth-authorization-server    GET     200     200
.well-known/jwks.json                     GET     200     200
admin                                     GET     302     302
admin/                                    GET     302     200
"""

WHOSE = ("own", "other")
# (role, whose row) in the order of the columns.
PLACES = [(role, whose) for role in ("user", "support", "admin") for whose in WHOSE]
OPEN = "open"
PUBLIC = "public"

T = TypeVar("T")


@dataclass(frozen=True)
class Cell:
    status: int
    code: str | None = None
    listed: bool | None = None

    @classmethod
    def read(cls, word: str, *, by_password: bool) -> Cell:
        if word.endswith("*"):
            if by_password:
                return cls.read(word[:-1], by_password=True)
            return cls(200, listed=False) if word == "in*" else cls(403, "FORBIDDEN")
        if word in {"in", "out"}:
            return cls(200, listed=word == "in")
        return cls(int(word), {"401": "UNAUTHENTICATED", "403": "FORBIDDEN", "404": "NOT_FOUND"}.get(word))


@dataclass(frozen=True)
class Line:
    template: str
    operation: str
    needs: str
    nobody: str
    words: tuple[str, ...]

    @property
    def method(self) -> str:
        return self.operation.partition(":")[0]

    @property
    def scope(self) -> str | None:
        return self.needs if ":" in self.needs else None

    @property
    def has_lines(self) -> bool:
        return ":lines" in self.operation

    @property
    def only_by_password(self) -> bool:
        """Whether no other credential gets anything from it, whoever sends it."""
        return all(word.endswith("*") or word == "403" for word in self.words) and not self.scope

    def cells(self, *, by_password: bool) -> dict[tuple[str, str], Cell]:
        """What is expected, by role and by whose row it is."""
        read = [Cell.read(word, by_password=by_password) for word in self.words]
        return dict(zip(PLACES, read, strict=True))

    def __str__(self) -> str:
        return f"{self.operation} {self.template}"


def by_turns(turn: int, options: Sequence[T]) -> Sequence[T]:
    """One of the options, and the next one at the next turn; all of them where every combination is asked for."""
    return options if EVERY_COMBINATION else [options[turn % len(options)]]


def every_second(turn: int, options: Sequence[T]) -> Sequence[T]:
    """Half of the options, and the others at the next turn; all of them where every combination is asked for."""
    return options if EVERY_COMBINATION else options[turn % 2 :: 2]


def lines() -> list[Line]:
    rows = [row.split() for row in TABLE.splitlines()[3:]]
    return [Line(*row[:4], tuple(row[4:])) for row in rows if row]


def lines_outside() -> list[tuple[str, str, int, int]]:
    """Template, method, and the status for nobody and for a browser that is signed in."""
    rows = [row.split() for row in OUTSIDE.splitlines()[2:]]
    return [(template, method, int(nobody), int(session)) for template, method, nobody, session in filter(None, rows)]
