"""The limit: the same answers by the thinnest Python there is, over the tables of the stock application.

An RSGI callable, prepared statements of asyncpg, orjson, and a signature checked by hand. It has no rule of the
contract: no validation, no versions, no quotas, no rights. What is faster than this is no Python.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

import asyncpg
import orjson

CONNECTIONS = 8  # of a worker
SECRET = os.environ["JWT_SIGNING_KEY"].encode()
JSON = [("content-type", "application/json")]

_USER = "id, name, email, role, status, email_verified_at, external_id, created_at, updated_at"
USER = f"SELECT {_USER} FROM stock_user WHERE id = $1"
PAGE = f"SELECT {_USER} FROM stock_user ORDER BY id LIMIT $1 OFFSET $2"
WALK = f"SELECT {_USER} FROM stock_user WHERE id > $1 ORDER BY id LIMIT $2"
FILTERED = f"SELECT {_USER} FROM stock_user WHERE status = $1 AND role = $2 ORDER BY id LIMIT $3 OFFSET $4"
COUNT = "SELECT count(*) FROM stock_user"
COUNT_FILTERED = "SELECT count(*) FROM stock_user WHERE status = $1 AND role = $2"
ORDERS = "SELECT id, user_id, item, qty, created_at FROM stock_order WHERE user_id = $1 ORDER BY id LIMIT $2 OFFSET $3"
COUNT_ORDERS = "SELECT count(*) FROM stock_order WHERE user_id = $1"
NEW_ORDER = (
    "INSERT INTO stock_order (user_id, item, qty, created_at) VALUES ($1, $2, $3, now()) "
    "RETURNING id, user_id, item, qty, created_at"
)
# The key and the payment, or nothing when the key is known.
NEW_PAYMENT = """
    WITH key AS (INSERT INTO stock_idempotencykey (user_id, key, body) VALUES ($1, $2, '') ON CONFLICT DO NOTHING
                 RETURNING id),
         payment AS (INSERT INTO stock_payment (user_id, amount, created_at) SELECT $1, $3, now() FROM key
                     RETURNING id, user_id, amount::text, created_at)
    SELECT payment.*, key.id AS key FROM payment, key"""
STORE = "UPDATE stock_idempotencykey SET body = $2 WHERE id = $1"
STORED = "SELECT body FROM stock_idempotencykey WHERE user_id = $1 AND key = $2"
STATEMENTS = (
    *(USER, PAGE, WALK, FILTERED, COUNT, COUNT_FILTERED, ORDERS, COUNT_ORDERS),
    *(NEW_ORDER, NEW_PAYMENT, STORE, STORED),
)


class Connection:
    async def open(self) -> Connection:
        self.raw = await asyncpg.connect(os.environ["DATABASE_URL"], server_settings={"search_path": "stock"})
        self.prepared = {statement: await self.raw.prepare(statement) for statement in STATEMENTS}
        return self

    async def rows(self, statement: str, *values: object) -> list[asyncpg.Record]:
        found: list[asyncpg.Record] = await self.prepared[statement].fetch(*values)
        return found


class Application:
    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.free: asyncio.LifoQueue[Connection] = asyncio.LifoQueue()
        for _ in range(CONNECTIONS):
            self.free.put_nowait(loop.run_until_complete(Connection().open()))

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        user = user_of(scope.headers.get("authorization") or "")
        if user is None:
            protocol.response_str(401, JSON, "{}")
            return
        body = orjson.loads(await protocol()) if scope.method == "POST" else None
        connection = await self.free.get()
        try:
            if body is None:
                status, answer = 200, await read(connection, scope)
            elif scope.path == "/orders":
                (row,) = await connection.rows(NEW_ORDER, user, body["item"], body["qty"])
                status, answer = 201, one(row)
            else:
                status, answer = 201, await pay(connection, user, scope.headers.get("idempotency-key"), body["amount"])
        finally:
            self.free.put_nowait(connection)
        protocol.response_bytes(status, JSON, answer)


application = Application()


def user_of(header: str) -> int | None:
    """The user of an unexpired token with our signature (HS256)."""
    signed, _, signature = header.removeprefix("Bearer ").rpartition(".")
    if not hmac.compare_digest(hmac.digest(SECRET, signed.encode(), "sha256"), urlsafe_b64decode(signature + "==")):
        return None
    claims = orjson.loads(urlsafe_b64decode(signed.partition(".")[2] + "=="))
    return int(claims["user_id"]) if claims["exp"] > time.time() else None


async def read(connection: Connection, scope: Any) -> bytes:
    query = dict(parse_qsl(scope.query_string, keep_blank_values=True))
    page, limit = int(query.get("page", 1)), min(int(query.get("limit", 20)), 100)
    skip = (page - 1) * limit
    match scope.path.split("/")[2:]:
        case [user]:
            return one((await connection.rows(USER, int(user)))[0])
        case [user, _]:
            rows = await connection.rows(ORDERS, int(user), limit, skip)
            ((total,),) = await connection.rows(COUNT_ORDERS, int(user))
        case _ if "cursor" in query:
            rows = await connection.rows(WALK, int(query["cursor"] or 0), limit + 1)
            mark = str(rows[limit - 1]["id"]) if len(rows) > limit else None
            return many(rows[:limit], {"nextCursor": mark, "hasMore": mark is not None})
        case _ if "status" in query:
            rows = await connection.rows(FILTERED, query["status"], query["role"], limit, skip)
            ((total,),) = await connection.rows(COUNT_FILTERED, query["status"], query["role"])
        case _:
            rows = await connection.rows(PAGE, limit, skip)
            ((total,),) = await connection.rows(COUNT)
    return many(rows, {"page": page, "limit": limit, "total": total, "totalPages": -(-total // limit)})


async def pay(connection: Connection, user: int, key: str, amount: float) -> bytes:
    async with connection.raw.transaction():
        made = await connection.rows(NEW_PAYMENT, user, key, Decimal(str(amount)))
        if not made:
            ((stored,),) = await connection.rows(STORED, user, key)
            return bytes(stored, "utf-8")
        payment = dict(made[0])
        identifier = payment.pop("key")
        answer = one(payment)
        await connection.rows(STORE, identifier, answer.decode())
        return answer


def one(row: asyncpg.Record) -> bytes:
    return orjson.dumps({"success": True, "data": dict(row)}, option=orjson.OPT_UTC_Z)


def many(rows: Sequence[asyncpg.Record], meta: Mapping[str, object]) -> bytes:
    return orjson.dumps({"success": True, "data": [dict(row) for row in rows], "meta": meta}, option=orjson.OPT_UTC_Z)
