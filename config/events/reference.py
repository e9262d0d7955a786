"""The reference's description of the feed, besides the form of an event."""

from config.api.listing.cursors import CURSOR_CHARACTERS
from config.api.schema.fields import build_integer, build_object, build_string
from config.api.schema.parameters import build_list_parameter, build_parameter, build_references
from config.http.request_limits import MAX_TARGET
from config.models.events import TYPES

_CURSOR = build_string(MAX_TARGET, f"^{CURSOR_CHARACTERS}+$")
_FIELDS = {"type": "string", "pattern": "^[a-z_]+(,[a-z_]+)*$", "maxLength": 100}

PARAMETERS = [
    build_parameter(
        "cursor",
        build_string(MAX_TARGET, f"^{CURSOR_CHARACTERS}*$"),
        "A `nextCursor`, or the `cursor` of an event. Empty or omitted: starts with the oldest event. `now`: returns "
        "no events, only a `nextCursor` for future ones.",
        allowEmptyValue=True,
    ),
    *build_references("limit"),
    build_list_parameter(
        "type",
        {"type": "string", "enum": list(TYPES)},
        "Returns only events of these types. Separate several types with commas.",
    ),
    build_parameter(
        "user_id",
        build_integer(1),
        "Returns only events whose `user_id` is this one. With the role `user`, you can send only your own ID.",
    ),
    build_parameter("fields", _FIELDS, "The fields to return, separated by commas. All other fields are omitted."),
    build_parameter(
        "include",
        {"type": "string", "enum": ["resource"]},
        "`resource` also returns the current resource of each event, in the order of the events, under `included`. "
        "For a resource that no longer exists or that you cannot see, it returns null.",
    ),
]
MEMBERS = {
    "meta": build_object(
        {"nextCursor": _CURSOR, "hasMore": {"type": "boolean"}},
        examples=[{"nextCursor": "vTq3Xo0m5dVb2mFhW1kqj2y0cRzJtA", "hasMore": False}],
    ),
    "_links": {
        "$ref": "#/components/schemas/PageLinks",
        "examples": [
            {
                "self": {"href": "/api/v2/events"},
                "first": {"href": "/api/v2/events?cursor="},
                "next": {"href": "/api/v2/events?cursor=vTq3Xo0m5dVb2mFhW1kqj2y0cRzJtA"},
            }
        ],
    },
    "included": build_object(
        {"resource": build_object({"data": {"type": "array", "items": {"type": ["object", "null"]}, "maxItems": 100}})},
        description="What `include` names.",
    ),
}
