"""NDJSON in the document: a body of lines, examples of it and of its answer; and whole lists, as NDJSON and as CSV."""

import json
from collections.abc import Mapping

from django.conf import settings

from config.api.representation import envelope
from config.api.representation.envelope import LINKS
from config.api.schema.fields import build_string
from config.http.json import MAX_LINES, JSONObject
from config.http.media_types import CSV, NDJSON

# Where `content` would stand, in the same form. Of several successful bodies a generated client makes one type that can
# be any of them, and who creates a single resource would have to find out which one came.
CONTENT = "x-content"


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


def build_response(schema: JSONObject, example: JSONObject) -> JSONObject:
    """The response that tells what became of each line.

    Args:
        schema: of its body.
        example: of its body.
    """
    description = (
        "What became of each line, of NDJSON with `partial=true`. The body is `application/json` as below. So is "
        "that of the 201 to NDJSON without `partial=true`, and that of the 200 to a dry run. A line that was "
        "refused has `error` in the place of `data`."
        f"\n\n```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```"
    )
    return {"description": description, CONTENT: {"application/json": {"schema": schema, "example": example}}}


def build_streams(row: JSONObject) -> JSONObject:
    """The content of a response that is a whole list, in the words of OpenAPI 3.2.

    Args:
        row: the schema of a row.
    """
    return {NDJSON: {"itemSchema": row}, CSV: {}}
