"""Descriptions of the operations of a resource, which the reference and the browsable API show.

A viewset describes its own particulars in `texts`. `{one}`, `{many}` and `{parent}` are replaced by its rows' names.
"""

from collections.abc import Mapping

RESOURCE_TEXTS: Mapping[str, str] = {
    "list": "Returns a page of the {many}{parent} that you can access.\n\n"
    "The links in the response lead to the other pages. Without `page` and `offset`, pages are read by cursor: you get "
    "each item once, even if others are added meanwhile. With `page` or `offset`, `meta` has the `total`. With some "
    "filters, the service can stop counting: `total` is then null, and `totalAtLeast` is the number of items counted.",
    "create": "Creates a new {one}{parent}.\n\n`Location` is the URL of the new {one}.",
    "retrieve": "Returns the {one}.\n\nReturns 404 if the {one} does not exist or you cannot access it.",
    "update": "Replaces the {one}.\n\n"
    "An omitted optional field is reset to its default. To avoid overwriting someone else's change, send `If-Match`.",
    "partial_update": "Updates the fields that you send.\n\n"
    "The body is a merge patch (RFC 7396): null resets an optional field to its default. To avoid overwriting someone "
    "else's change, send `If-Match`.",
    "destroy": "Deletes the {one}.\n\nRepeating the request returns 404.",
}
