"""Descriptions of the operations of a resource, which the reference and the browsable API show.

A viewset describes its own particulars in `texts`. `{one}`, `{many}` and `{parent}` are replaced by its rows' names.
"""

from collections.abc import Mapping

RESOURCE_TEXTS: Mapping[str, str] = {
    "list": "Returns a page of the {many}{parent} that you can access.\n\n"
    "Follow the links in the response to get further pages. With `page` or `offset`, you get the total, or "
    "`totalAtLeast` if more items match than are counted. `cursor` reads a list of any length and returns each item "
    "once, even if others are added meanwhile.",
    "create": "Creates a new {one}{parent}.\n\nReturns it as stored, with its URL in `Location`.",
    "retrieve": "Returns the {one}.\n\nReturns 404 if the {one} does not exist or you cannot access it.",
    "update": "Replaces the {one}.\n\n"
    "Omitted fields are reset to their defaults. To avoid overwriting someone else's change, send `If-Match`: if the "
    "resource has changed, the request fails with 412.",
    "partial_update": "Updates the fields that you send.\n\n"
    "The body is a merge patch (RFC 7396). To avoid overwriting someone else's change, send `If-Match`: if the "
    "resource has changed, the request fails with 412.",
    "destroy": "Deletes the {one}.\n\nRepeating the request returns 404.",
}

# Descriptions of the fields of request bodies.
FIELD_TEXTS: Mapping[str, str] = {
    "amount": "The amount, with at most two decimals, such as 12.30. The service stores no currency.",
    "body": "The text of the post. Default: empty.",
    "client_id": "The ID of the application.",
    "client_secret": "The secret of a confidential application.",
    "code": "The authorization code.",
    "code_verifier": "The PKCE verifier (RFC 7636).",
    "current_password": "Your current password. Only when changing your own password, and then required.",
    "cursor": "The `cursor` of an event, or a `nextCursor`. Empty: all stored events.",
    "description": "A note of your own.",
    "email": "The email address.",
    "expires_at": "When the key expires. Default: never.",
    "external_id": "The ID of the user in another system. Only administrators can set it.",
    "grant_type": "The grant type.",
    "item": "The ordered item.",
    "name": "The name.",
    "overlap_seconds": "How many seconds the previous key or secret stays valid. Default: 86400 (one day).",
    "password": "The password. A new one has at least 8 characters, is not common, not only digits, and not similar to "
    "the name or email address. A user who is created without one can be invited to set it.",
    "password_hash": "A password hash, instead of `password`. Only when creating a user: see /docs/import-users.",
    "qty": "The quantity.",
    "redirect_uri": "The redirect URI of the authorization request.",
    "refresh_token": "The refresh token.",
    "role": "The role. Only administrators can set it. Default: `user`.",
    "scope": "The scopes, separated by spaces.",
    "scopes": "The scopes of the key. Default: all scopes except `audit:read`.",
    "status": "The status. Default: `active`.",
    "text": "The text of the comment.",
    "title": "The title of the post.",
    "token": "The access or refresh token.",
    "token_type_hint": "The type of the token (RFC 7009). It is ignored.",
    "types": "The types of events to send.",
    "url": "The https URL that events are sent to.",
    "user_id": "The owner. Only administrators can name another user. Default: you.",
}
