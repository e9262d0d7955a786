"""What the operations of a resource do, in words for callers: the reference and the browsable API show them.

A viewset says by `texts` what is special about its own. `{one}`, `{many}` and `{parent}` stand for its rows' names.
"""

from collections.abc import Mapping

RESOURCE_TEXTS: Mapping[str, str] = {
    "list": "Returns a page of the {many}{parent} that you can access.\n\n"
    "Follow the links in the response to get further pages. `page` and `offset` return a total. `cursor` reads a list "
    "of any length and returns each item once, even if others are added meanwhile.",
    "create": "Creates a new {one}{parent}.\n\nReturns it as stored, with its address in `Location`.",
    "retrieve": "Returns the {one}.\n\nReturns 404 if it does not exist or you cannot access it.",
    "update": "Replaces the {one}.\n\n"
    "Omitted fields are reset to their defaults. To avoid overwriting someone else's change, send `If-Match`: if the "
    "resource has changed, the request fails with 412.",
    "partial_update": "Updates the fields that you send.\n\n"
    "The body is a merge patch (RFC 7396). To avoid overwriting someone else's change, send `If-Match`: if the "
    "resource has changed, the request fails with 412.",
    "destroy": "Deletes the {one}.\n\nRepeating the request returns 404.",
}
