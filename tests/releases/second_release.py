"""An artificial release after this one: this one, and orders with a note, which their present rows get in batches."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.service import Copy, temporary_copy

MIGRATIONS = sorted((Path(__file__).parent / "second").glob("0*.py"))
FIELD = '    qty = models.IntegerField()\n    note = models.CharField(max_length=100, db_default="")\n'
INDEX = '        indexes = [\n            models.Index(fields=["note", "id"], name="orders_note"),\n'


@contextmanager
def second_release() -> Iterator[Copy]:
    with temporary_copy("second") as copy:
        for path in MIGRATIONS:
            shutil.copy(path, copy.folder / "orders/migrations")
        models = copy.folder / "orders/models.py"
        text = models.read_text()
        for added in (FIELD, INDEX):
            anchor = added.partition("\n")[0] + "\n"
            assert text.count(anchor) == 1
            text = text.replace(anchor, added)
        models.write_text(text)
        yield copy
