"""Descriptions of the operations of a resource, which the reference and the browsable API show.

A viewset describes its own particulars in `texts`. `{one}`, `{many}` and `{parent}` are replaced by its rows' names.
"""

from collections.abc import Mapping

RESOURCE_TEXTS: Mapping[str, str] = {
    "list": "Returns a page of the {many}{parent} that you can access.\n\n"
    "The links in the response lead to the other pages. Without `page` and `offset`, pages are read by cursor: you get "
    "each item once, even if others are added meanwhile. With `page` or `offset`, `meta` has the `total`. With some "
    "filters, the service can stop counting at 10,000 items: `total` is then null, and `totalAtLeast` is 10000.",
    "create": "Creates a new {one}{parent}.\n\n`Location` is the URL of the new {one}.",
    "retrieve": "Returns the {one}.\n\nReturns 404 if the {one} does not exist or you cannot access it.",
    "update": "Replaces the {one}.\n\n"
    "An omitted optional field is reset to its default. To avoid overwriting someone else's change, send `If-Match`.",
    "partial_update": "Updates the fields that you send.\n\n"
    "The body is a merge patch (RFC 7396): null resets an optional field to its default. To avoid overwriting someone "
    "else's change, send `If-Match`.",
    "destroy": "Deletes the {one}.\n\nRepeating the request returns 404.",
}

# Descriptions of the fields of request bodies.
FIELD_TEXTS: Mapping[str, str] = {
    "amount": "The amount, with at most two decimals, such as 12.30. The service stores no currency.",
    "body": "The text of the post.",
    "client_id": "The ID of the application.",
    "client_secret": "The secret of a confidential application.",
    "code": "The authorization code.",
    "code_verifier": "The PKCE verifier (RFC 7636).",
    "current_password": "Your current password: required with `password` if you change your own. Omit it otherwise.",
    "cursor": "The `cursor` of an event, or a `nextCursor` of `GET /events`. Empty: all stored events.",
    "description": "A note of your own.",
    "email": "The email address.",
    "expires_at": "When the key expires.",
    "external_id": "The ID of the user in another system. Only administrators can set it.",
    "grant_type": "The grant type.",
    "item": "The ordered item.",
    "name": "The name.",
    "password": "The new password: at least 8 characters, not common, not only digits, and not similar to the name or "
    "email address.",
    "password_hash": "A hash of the password, instead of `password`: see /docs/import-users.",
    "qty": "The quantity.",
    "redirect_uri": "The redirect URI of the authorization request.",
    "refresh_token": "The refresh token.",
    "role": "The role. Only administrators can set it.",
    "scope": "The scopes, separated by spaces.",
    "scopes": "The scopes of the key.",
    "status": "The status.",
    "text": "The text of the comment.",
    "title": "The title of the post.",
    "token": "The access or refresh token.",
    "token_type_hint": "The type of the token (RFC 7009). It is ignored.",
    "types": "The types of events to send.",
    "url": "The https URL that events are sent to.",
    "user_id": "The owner. Only administrators can name another user.",
}

# What a field that is left out becomes, which a patch leaves as it is.
DEFAULT_TEXTS: Mapping[str, str] = {
    "body": "empty",
    "expires_at": "never",
    "role": "`user`",
    "scopes": "all scopes except `audit:read`",
    "status": "`active`",
    "user_id": "you",
}
