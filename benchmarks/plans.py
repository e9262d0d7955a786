"""Looks at the plan of every list's page queries, and writes them down as Markdown.

Asks the service itself for the first, the middle and the last page, with their totals, and for the next cursor page
of each list in each order under each filter, and explains the very statements that it sent. Wants a database filled
by `manage.py seed`:

    DATABASE_URL=… SECRET_KEY=… … python -m benchmarks.plans > docs/plans.md
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any
from urllib.parse import urlencode

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402

from accounts.services import create_api_key  # noqa: E402
from orders.views import OrderViewSet  # noqa: E402
from payments.views import PaymentViewSet  # noqa: E402
from posts.views import PostViewSet  # noqa: E402
from users import services  # noqa: E402
from users.models import Role, Status, User  # noqa: E402
from users.views import UserViewSet  # noqa: E402

# Lists of so few pages have neither a middle nor an end to speak of.
FEW = 100
MAX_ROWS = 10_000
MAX_MILLISECONDS = 20
# For the middle of a list in another order than that of ids, half of the list is walked by.
MAX_WALK_MILLISECONDS = 1_000
Statement = tuple[str, Any]


def main() -> None:
    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    administrator = User.objects.with_email("plans@example.com").first() or services.create(
        name="Plans", email="plans@example.com", role=Role.ADMIN, password=None
    )
    client = Client(headers={"X-API-Key": create_api_key(administrator, name="plans")[1]})
    print(_head())
    broken = 0
    for path, sortable, filters in lists():
        print(f"\n## {path}\n\n| Filter | Sort | Page | Plan | Rows read | ms |\n|---|---|---|---|---:|---:|")
        for query, (sort, order) in product(filters, product(sortable, ("asc", "desc"))):
            address = f"{path}?{urlencode({**query, 'sort': sort, 'order': order})}"
            for page, statement in page_statements(client, address):
                plan, rows, milliseconds = explained(statement)
                walk = page == "middle" and sort != "id"
                fine = "Seq Scan" not in plan and (
                    milliseconds < MAX_WALK_MILLISECONDS
                    if walk
                    else milliseconds < MAX_MILLISECONDS and rows <= MAX_ROWS
                )
                broken += not fine
                shown = " ".join(f"{name}={value}" for name, value in query.items()) or "–"
                mark = "" if fine else " **over**"
                print(f"| {shown} | {sort} {order} | {page} | {plan} | {rows:,} | {milliseconds:.2f}{mark} |")
    print(f"\nOver the bounds: {broken}.")
    sys.exit(bool(broken))


def lists() -> Iterator[tuple[str, Any, list[dict[str, str]]]]:
    none: dict[str, str] = {}
    roles = [{"role": role.value} for role in Role]
    states = [{"status": status.value} for status in Status]
    both = [{**role, **status} for role in roles for status in states]
    yield "/users", UserViewSet.sortable, [none, *roles, *states, *both, {"email": "plans@example.com"}]
    yield "/orders", OrderViewSet.sortable, [none]
    yield "/payments", PaymentViewSet.sortable, [none]
    yield "/posts", PostViewSet.sortable, [none]
    owner = User.objects.filter(orders__isnull=False).order_by("-id").values_list("pk", flat=True)[0]
    yield f"/users/{owner}/orders", OrderViewSet.sortable, [none]
    yield f"/users/{owner}/posts", PostViewSet.sortable, [none]


def page_statements(client: Client, address: str) -> Iterator[tuple[str, Statement]]:
    """The statements that read the pages of a list."""
    first, page = asked(client, f"{address}&page=1")
    if not page["data"]:
        return
    yield "first", first
    if (pages := page["meta"]["totalPages"]) > FEW:
        yield "middle", asked(client, f"{address}&page={pages // 2}")[0]
        yield "last", asked(client, f"{address}&page={pages}")[0]
    _, walk = asked(client, f"{address}&cursor=&limit=20")
    if walk["meta"]["hasMore"]:
        yield "next cursor", asked(client, walk["_links"]["next"]["href"])[0]


def asked(client: Client, address: str) -> tuple[Statement, Any]:
    seen: list[Statement] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if " LIMIT " in sql and "ORDER BY" in sql and "accounts_apikey" not in sql:
            seen.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        answer = client.get(address)
    if answer.status_code != 200:
        raise SystemExit(f"{address}: {answer.content.decode()}")
    return (seen or [("", None)])[-1], json.loads(answer.content)


def explained(statement: Statement) -> tuple[str, int, float]:
    """The nodes of the plan from the top, the rows its scans read, and the least of five times in milliseconds."""
    sql, params = statement
    times = []
    with connection.cursor() as cursor:
        for _ in range(5):
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
            (document,) = cursor.fetchone()[0]
            times.append(document["Execution Time"])
    nodes = list(_nodes(document["Plan"]))
    names = [f"{node['Node Type']}{' on ' + node['Index Name'] if 'Index Name' in node else ''}" for node in nodes]
    read = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes
        if "Scan" in node["Node Type"] and "Bitmap Index" not in node["Node Type"]
    )
    return " ← ".join(dict.fromkeys(names)), round(read), min(times)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _head() -> str:
    counts = {model.__name__: model._default_manager.count() for model in _models()}
    held = ", ".join(f"{number:,} {name.lower()}s" for name, number in counts.items())
    return f"""# The plans of the lists

`python -m benchmarks.plans` writes this page. It asks the service for pages of every list, and explains the statement
that the service sends for each page and its total. The database holds {held}.

* *Page*: the first, middle and last page by offset, and the next page by cursor.
* *Plan*: the nodes of PostgreSQL's plan. A node that occurs several times is named once.
* *Rows read*: the rows that the scans of the plan read, including rows that a filter removes.
* *ms*: the shortest of five executions.

No plan may have a sequential scan, read over {MAX_ROWS:,} rows or take {MAX_MILLISECONDS} ms. The middle of a list
in another order than that of ids walks half of an index. It may read more rows, and take up to
{MAX_WALK_MILLISECONDS:,} ms.

The last line counts the plans that break these bounds."""


def _models() -> list[Any]:
    return [view.queryset.model for view in (UserViewSet, OrderViewSet, PaymentViewSet, PostViewSet)]


if __name__ == "__main__":
    main()
