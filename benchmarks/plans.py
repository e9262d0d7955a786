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
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import combinations, product
from random import Random
from typing import Any
from urllib.parse import urlencode

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import connection  # noqa: E402
from django.db.models import Model  # noqa: E402
from django.test import Client  # noqa: E402

from accounts import logins  # noqa: E402
from accounts.services import create_api_key  # noqa: E402
from accounts.views import APIKeyViewSet  # noqa: E402
from config.api.listing.bounded import MAX_COUNTED  # noqa: E402
from config.api.listing.pagination import DEFAULT_LIMIT  # noqa: E402
from config.events.representation import get_place, seal_place  # noqa: E402
from config.http.json import JSONObject  # noqa: E402
from config.models import Event, EventEpoch  # noqa: E402
from config.postgresql.events import PARTITION  # noqa: E402
from config.postgresql.visibility import ERASURES  # noqa: E402
from config.postgresql.words import MAX_PROBED, MAX_WORDS  # noqa: E402
from orders.views import OrderViewSet  # noqa: E402
from payments.views import PaymentViewSet  # noqa: E402
from posts.models import COMMENTS_IN_LIST  # noqa: E402
from posts.views import PostViewSet  # noqa: E402
from users import services  # noqa: E402
from users.models import Role, Status, User  # noqa: E402
from users.views import UserViewSet  # noqa: E402

# Lists of so few pages have neither a middle nor an end to speak of.
FEW = 100
# Those with filters of later versions, and the last page under them.
FILTERED = (("/users", UserViewSet), ("/orders", OrderViewSet), ("/payments", PaymentViewSet), ("/posts", PostViewSet))
DEEPEST_PAGE = 500
# Of the walk to a page, of the page with the comments of its posts, and of what is counted beside it; and one of each
# part that is merged.
MAX_FILTERED_ROWS = MAX_COUNTED + DEFAULT_LIMIT * (1 + COMMENTS_IN_LIST) + MAX_COUNTED + 1 + len(Role) * len(Status)
# Words that few rows have, one in a hundred, and all; two that are rare together, and two that are never together; the
# beginning of many; as many as there may be.
SEARCHES = {
    "/users": (
        "500000",
        "nakamura",
        "example",
        "maria nakamura",
        "net com",
        "a",
        "a b c",
        "1 2 3 4 5 6 7 8",
        "example org maria",
    ),
    "/orders": ("nothing", "a", "s", "a b", "a b c d e f g h"),
    "/posts": ("nothing", "a", "s", "a b", "a b c d e f g h"),
}
SEARCHED = (("/users", UserViewSet), ("/orders", OrderViewSet), ("/posts", PostViewSet))
# Of the combinations of three filters and more, with a sort.
SAMPLED = 500
# Of the look at the index of words; with a page, less is read.
MAX_SEARCHED_ROWS = MAX_PROBED + MAX_WORDS
# Lists whose totals are counted at each request, and not kept.
COUNTED = ("/api-keys",)
MAX_ROWS = 10_000
EVENTS = 10_000_000
EVENTS_OF_A_TRANSACTION = 10
MAX_MILLISECONDS = 20
# For the middle of a list in another order than that of ids, half of the list is walked by.
MAX_WALK_MILLISECONDS = 1_000
Statement = tuple[str, Any]

# Each block with EXCEPTION is a transaction of its own inside this one.
_TAKE_TRANSACTION_IDS = """
DO $$ BEGIN
    CREATE TEMPORARY TABLE taken (number integer);
    FOR number IN 0..%s LOOP
        BEGIN INSERT INTO taken VALUES (number); EXCEPTION WHEN division_by_zero THEN NULL; END;
    END LOOP;
    DROP TABLE taken;
END $$
"""


def main() -> None:
    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    administrator = User.objects.with_email("plans@example.com").first() or services.create(
        name="Plans", email="plans@example.com", role=Role.ADMIN, password=None
    )
    _add_rows(administrator)
    print(_head())
    broken = 0
    for path, sortable, filters in lists():
        # An administrator sees everybody's keys by a credential made from the password; it is good for minutes.
        client = Client(headers={"Authorization": f"Bearer {logins.log_in(administrator).access}"})
        print(f"\n## {path}\n\n| Page | Plans | Rows read | ms |\n|---|---:|---:|---:|")
        found: dict[str, list[tuple[int, float]]] = {}
        for query, (sort, order) in product(filters, product(sortable, ("asc", "desc"))):
            address = f"{path}?{urlencode({**query, 'sort': sort, 'order': order})}"
            for page, statement in page_statements(client, address, by_offset=path not in COUNTED):
                plan, rows, milliseconds = explained(statement)
                walk = page == "middle" and sort != "id"
                fine = "Seq Scan" not in plan and (
                    milliseconds < MAX_WALK_MILLISECONDS
                    if walk
                    else milliseconds < MAX_MILLISECONDS and rows <= MAX_ROWS
                )
                broken += not fine
                found.setdefault(f"{page}, not by id" if walk else page, []).append((rows, milliseconds))
                if not fine:
                    print(f"| **over**: {page} of {address}: {plan} | | {rows:,} | {milliseconds:.2f} |")
        for page, all_of_it in found.items():
            rows, milliseconds = (max(column) for column in zip(*all_of_it, strict=True))
            print(f"| {page} | {len(all_of_it)} | {rows:,} | {milliseconds:.2f} |")
    for path, view in FILTERED:
        client = Client(headers={"Authorization": f"Bearer {logins.log_in(administrator).access}"})
        print(f"\n## {path}, filters together")
        broken += print_combinations(client, path, view)
    for path, view in SEARCHED:
        client = Client(headers={"Authorization": f"Bearer {logins.log_in(administrator).access}"})
        print(f"\n## {path}, searched\n\n| `q` | Rows read | ms |\n|---|---:|---:|")
        broken += print_searches(client, path, view)
    broken += print_events(administrator)
    print(f"\nOver the bounds: {broken}.")
    sys.exit(bool(broken))


def print_events(administrator: User) -> int:
    """Prints pages of the feed at its beginning, middle and end. Returns how many are over the bounds."""
    add_events()
    plain = User.objects.with_email("plans-plain@example.com").first() or services.create(
        name="Plain", email="plans-plain@example.com", password=None
    )
    everybody = create_api_key(administrator, name="plans")[1]
    own = create_api_key(plain, name="plans", scopes=["events:read", "orders:read"])[1]
    public = create_api_key(plain, name="plans", scopes=["events:read", "orders:read", "posts:read"])[1]
    asking = {
        "everything": (everybody, ""),
        "one type of eleven": (everybody, "&type=payment.created"),
        "a type without events": (everybody, "&type=user.removed"),
        "one user": (everybody, "&user_id=77"),
        "own events": (own, ""),
        "own and public events": (public, ""),
    }
    print(f"\n## /events\n\nOf {EVENTS:,} events.\n\n| Events | Plans | Rows read | ms |\n|---|---:|---:|---:|")
    broken = 0
    epoch = EventEpoch.objects.get().number
    for name, (key, query) in asking.items():
        client = Client(headers={"X-API-Key": key})
        found = []
        for id_ in (EVENTS // 50, EVENTS // 2, EVENTS - 20_000, EVENTS):
            (event,) = Event.objects.filter(id=id_, position=get_event_position(id_))
            cursor = seal_place(get_place(event, epoch))
            _, rows, milliseconds = explained(asked(client, f"/api/v2/events?cursor={cursor}&limit=100{query}")[0])
            found.append((rows, milliseconds))
            # Near the end, PostgreSQL may sort twice as many as are looked at; beside them, a row of each partition.
            broken += not (milliseconds < MAX_MILLISECONDS and rows <= 2 * MAX_ROWS + FEW)
        rows, milliseconds = (max(column) for column in zip(*found, strict=True))
        print(f"| {name} | {len(found)} | {rows:,} | {milliseconds:.2f} |")
    return broken


def get_event_position(number: int) -> int:
    """The transaction of an event."""
    return 1 + number // EVENTS_OF_A_TRANSACTION


def add_events() -> None:
    """Adds events of the last ninety days, unless there are."""
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=98)
    start -= timedelta(days=start.weekday())
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM (SELECT FROM config_event LIMIT %s) AS present", [EVENTS])
        if cursor.fetchone()[0] == EVENTS:
            return
        cursor.execute("TRUNCATE config_event")
        # Positions are numbers of transactions, and the feed ends before those that are still to come.
        cursor.execute(_TAKE_TRANSACTION_IDS, [EVENTS // EVENTS_OF_A_TRANSACTION])
        for week in (start + PARTITION * number for number in range(15)):
            name, end = f"config_event_{week:%Y%m%d}", week + PARTITION
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF config_event FOR VALUES FROM ('{week}') TO ('{end}')"
            )
        cursor.execute(
            "INSERT INTO config_event (id, position, resource_id, user_id, created_at, type)"
            " SELECT number, 1 + number / %s, number, 1 + number::bigint * 7919 %% 1000000,"
            " now() - (%s - number) * interval '90 days' / %s,"
            " (ARRAY['order.created', 'payment.created', 'post.created', 'comment.created', 'user.updated'])"
            "[1 + number %% 5] FROM generate_series(1, %s) AS number",
            [EVENTS_OF_A_TRANSACTION, EVENTS, EVENTS, EVENTS],
        )
        cursor.execute("SELECT setval('config_event_id_seq', %s)", [EVENTS])
        cursor.execute("VACUUM (ANALYZE) config_event")


def print_combinations(client: Client, path: str, view: Any) -> int:
    """Prints the worst of all combinations of up to two filters. Returns how many are over the bounds."""
    broken, served, worst = 0, 0, (0, 0.0)
    samples = sample_filters(view)
    for names in (*((name,) for name in samples), *combinations(samples, 2)):
        for sort, order in product(view.sortable, ("asc", "desc")):
            found = measure_combination(client, path, {name: samples[name] for name in names}, sort, order)
            if found is None:
                continue
            fine, rows, milliseconds = found
            served, broken = served + 1, broken + (not fine)
            worst = (max(worst[0], rows), max(worst[1], milliseconds))
            if not fine:
                print(f"\n**over**: {', '.join(names)} by {sort} {order}: {rows:,} rows, {milliseconds:.2f} ms")
    print(
        f"\nOf the combinations of up to two filters with a sort, {served} are served, {broken} over the bounds: at "
        f"most {worst[0]:,} rows, and {worst[1]:.2f} ms. The others are rejected."
    )
    return broken + print_sample(client, path, view, samples)


def print_sample(client: Client, path: str, view: Any, samples: dict[str, str]) -> int:
    """Prints the worst of some combinations of more than two filters. Returns how many are over the bounds."""
    random, broken, served, worst = Random(path), 0, 0, (0, 0.0)  # noqa: S311 - the same sample at each run
    for _ in range(SAMPLED):
        names = random.sample(sorted(samples), random.randint(3, len(samples)))
        sort, order = random.choice(view.sortable), random.choice(("asc", "desc"))
        found = measure_combination(client, path, {name: samples[name] for name in names}, sort, order)
        if found is not None:
            fine, rows, milliseconds = found
            served, broken = served + 1, broken + (not fine)
            worst = (max(worst[0], rows), max(worst[1], milliseconds))
    print(
        f"\nOf {SAMPLED} random combinations of three filters or more with a sort, {served} are served, {broken} over "
        f"the bounds: at most {worst[0]:,} rows, and {worst[1]:.2f} ms. The others are rejected."
    )
    return broken


def measure_combination(
    client: Client, path: str, filters: dict[str, str], sort: str, order: str
) -> tuple[bool, int, float] | None:
    """Whether all statements of a combination are within the bounds, and the most rows and milliseconds of one.

    None where the combination is refused.
    """
    address = f"/api/v2{path}?{urlencode({**filters, 'sort': sort, 'order': order})}"
    if client.get(address).status_code == 400:
        return None
    most = MAX_SEARCHED_ROWS if "q" in filters else MAX_FILTERED_ROWS
    found = [
        explained(statement)[1:]
        for position in ("page=1", f"page={DEEPEST_PAGE}", "cursor=")
        for statement in statements_of(client, f"{address}&{position}")
    ]
    rows, milliseconds = (max(column) for column in zip(*found, strict=True))
    return rows <= most and milliseconds < MAX_MILLISECONDS, rows, milliseconds


def print_searches(client: Client, path: str, view: Any) -> int:
    """Prints the worst statement of each search, in each order. Returns how many statements are over the bounds."""
    broken = 0
    for text in SEARCHES[path]:
        worst = (0, 0.0)
        for sort, order, position in product(view.sortable, ("asc", "desc"), ("page=1", "cursor=")):
            address = f"/api/v2{path}?{urlencode({'q': text, 'sort': sort, 'order': order})}&{position}"
            for statement in statements_of(client, address):
                _, rows, milliseconds = explained(statement)
                broken += not (rows <= MAX_SEARCHED_ROWS and milliseconds < MAX_MILLISECONDS)
                worst = max(worst, (rows, milliseconds), key=lambda one: one[1])
        mark = "" if worst[0] <= MAX_SEARCHED_ROWS and worst[1] < MAX_MILLISECONDS else " **over**"
        print(f"| {text} | {worst[0]:,} | {worst[1]:.2f}{mark} |")
    return broken


def statements_of(client: Client, address: str) -> list[Statement]:
    """The statements of a request that read rows, or words."""
    seen: list[Statement] = []

    def watch(execute: Callable, sql: str, params: object, many: bool, context: object) -> object:
        if sql.startswith("SELECT") and ("word" in sql or "ORDER BY" in sql):
            seen.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        answer = client.get(address)
    if answer.status_code != 200:
        raise SystemExit(f"{address}: {answer.content.decode()}")
    return seen


def sample_filters(view: Any) -> dict[str, str]:
    """A value for each filter of a list, which leaves many rows."""
    ids = ",".join(str(number * 9973 % 1_000_000 + 1) for number in range(1, 101))
    values = {
        "id": ids,
        "user_id": ids,
        "role": "admin,user",
        "status": "active,inactive",
        "email": "plans@example.com",
        "q": "a",
    }
    bounds = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "amount": "500", "qty": "3"}
    names = [*view.filterset_class.first, *view.filterset_class.later]
    return {name: values.get(name) or bounds.get(name.partition("[")[0], "500000") for name in names}


def _add_rows(owner: User) -> None:
    """Adds a payment and an API key for each user, unless there are; `seed` makes none.

    The keys are all of one owner, and none opens anything.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO payments_payment (user_id, amount)"
            " SELECT id, 1 + id % 99991 / 100.0 FROM users_user WHERE NOT EXISTS (SELECT FROM payments_payment)"
        )
        cursor.execute(
            "INSERT INTO accounts_apikey (user_id, name, prefix, digest, scopes)"
            " SELECT %s, 'Key ' || sha256(id::text::bytea)::text, 'urs_', sha256(('plans' || id)::bytea),"
            " '{users:read}' FROM users_user ON CONFLICT DO NOTHING",
            [owner.pk],
        )
        cursor.execute("ANALYZE payments_payment, accounts_apikey")


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
    yield "/api-keys", APIKeyViewSet.sortable, [none]


def page_statements(client: Client, address: str, *, by_offset: bool) -> Iterator[tuple[str, Statement]]:
    """The statements that read the pages of a list, those by cursor and perhaps those by offset."""
    if by_offset:
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


def asked(client: Client, address: str) -> tuple[Statement, JSONObject]:
    seen: list[Statement] = []

    def watch(execute: Callable, sql: str, params: object, many: bool, context: object) -> object:
        if " LIMIT " in sql and "ORDER BY" in sql:
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
        if "Scan" in node["Node Type"] and node["Node Type"] not in {"Bitmap Index Scan", "Subquery Scan"}
    )
    return " ← ".join(dict.fromkeys(names)), round(read), min(times)


def _nodes(plan: JSONObject) -> Iterator[JSONObject]:
    # That table is empty, and read as a whole.
    if plan.get("Relation Name") == ERASURES:
        return
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _head() -> str:
    counts = {model._meta.verbose_name_plural: model._default_manager.count() for model in _models()}
    held = ", ".join(f"{number:,} {name}" for name, number in counts.items())
    return f"""# What each list reads

This page shows how many rows PostgreSQL reads for each list, and how long it takes. The database had {held}.
`python -m benchmarks.plans` writes it: it requests pages of every list, and explains the statements that the service
sends, with their totals.

* *Page*: the first, middle and last page by offset, and the next page by cursor.
* *Plans*: the combinations of filters and sorts that were explained.
* *Rows read*: the most rows that the scans of a plan read, including rows that a filter removes.
* *ms*: the slowest plan, each at the shortest of five executions.

No plan contains a sequential scan, reads more than {MAX_ROWS:,} rows or takes {MAX_MILLISECONDS} ms. Only the middle of
a list that is not sorted by id walks half of an index, in up to {MAX_WALK_MILLISECONDS:,} ms. With several filters, a
page reads at most {MAX_FILTERED_ROWS:,} rows, and a search at most {MAX_SEARCHED_ROWS:,}. The last line counts the
plans over these bounds.

API keys keep no totals, so only their pages by cursor are listed."""


def _models() -> list[type[Model]]:
    views = (UserViewSet, OrderViewSet, PaymentViewSet, PostViewSet, APIKeyViewSet)
    return [view.queryset.model for view in views]


if __name__ == "__main__":
    main()
