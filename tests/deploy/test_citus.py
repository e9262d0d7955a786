"""deploy/citus.sql fits the models. With CITUS_URL the tests run on a database that it has distributed."""

import re
from pathlib import Path

from config.models import IdempotencyRecord
from orders.models import Order
from payments.models import Payment

SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "citus.sql"


def test_tables_are_distributed_by_their_users() -> None:
    script = SCRIPT.read_text()
    models = [Order, Payment, IdempotencyRecord]
    wanted = [(model._meta.db_table, model._meta.get_field("user").column) for model in models]
    assert re.findall(r"create_distributed_table\('(\w+)', '(\w+)'", script) == wanted
    assert re.findall(r"ALTER TABLE (\w+) ADD PRIMARY KEY \(id, (\w+)\)", script) == wanted
    assert re.findall(r"'(\w+)'::regclass", script) == [table for table, _ in wanted]
