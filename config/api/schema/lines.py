"""NDJSON in the document: a body of lines, and examples of it and of its answer."""

import json
from collections.abc import Mapping

from django.conf import settings

from config.api.representation import envelope
from config.api.representation.envelope import LINKS
from config.api.schema.fields import build_string
from config.http.json import MAX_LINES, JSONObject
from config.http.media_types import NDJSON

MULTI_STATUS_TEXT = (
    "What became of each line, with `partial=true`. Without it NDJSON is answered 201 with such a body: every line was "
    "added. A dry run is answered 200 with it."
)


def build_request(line: JSONObject) -> JSONObject:
    """The schema of a body of lines.

    Args:
        line: the schema of each.
    """
    return build_string(
        settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0,
        "^[^\\u0000]*$",
        contentMediaType=NDJSON,
        contentSchema=line,
        description=f"A JSON object a line, up to {MAX_LINES} lines: many at once, all of them or none.",
    )


def build_request_example(line: Mapping[str, object] | None) -> str | None:
    """A body of one line."""
    return None if line is None else json.dumps(line, ensure_ascii=False) + "\n"


def build_example(single: Mapping[str, JSONObject]) -> JSONObject:
    """What became of one line.

    Args:
        single: the response to a single resource.
    """
    data = {name: value for name, value in single["data"].items() if name != LINKS}
    return envelope.lines([{"line": 1, "status": 201, "data": data}], created=1)
