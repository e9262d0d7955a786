"""What the operations of a resource do, in words for callers: the reference and the browsable API show them.

A viewset says by `texts` what is special about its own. `{one}`, `{many}` and `{parent}` stand for its rows' names.
"""

from collections.abc import Mapping

RESOURCE_TEXTS: Mapping[str, str] = {
    "list": "A page of the {many}{parent} that you may see.\n\n"
    "Ask for the next page by the links of the answer. `page` and `offset` tell a total; `cursor` reads a list of any "
    "length, and each row once although others are added meanwhile.",
    "create": "Adds one {one}{parent}.\n\nThe answer holds it as it is stored; `Location` is its address.",
    "retrieve": "Reads one {one}.\n\nOne that you may not see is answered 404, as is one that is not there.",
    "update": "Replaces one {one}.\n\n"
    "A field that you leave out returns to its default. With `If-Match`, nobody's change is "
    "overwritten unseen: 412 tells that there was one.",
    "partial_update": "Changes the fields that you send, and no other.\n\nThe body is a merge patch (RFC 7396). With "
    "`If-Match`, nobody's change is overwritten unseen: 412 tells that there was one.",
    "destroy": "Deletes one {one}.\n\nA second time it is answered 404.",
}
