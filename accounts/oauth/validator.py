"""The rules of the authorization server, over those of the toolkit."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote_plus
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest
from oauth2_provider.models import get_access_token_model, get_grant_model, get_refresh_token_model
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.oauth2.rfc6749 import errors

from accounts.models import Application, digest_of
from config import audit
from config.api.limits.login_attempts import guess
from users.models import User

AccessToken, Grant, RefreshToken = get_access_token_model(), get_grant_model(), get_refresh_token_model()


def family_of(code_digest: str) -> UUID:
    """The family of the tokens that a code gives.

    It follows from the code, so that a code presented again finds what it gave although it is kept no longer.
    """
    return UUID(bytes=hashlib.sha256(code_digest.encode()).digest()[:16])


class Validator(OAuth2Validator):
    # --- Clients ---

    def authenticate_client(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Checks the client's secret, from the header or the body; the toolkit does so without a limit on guesses."""
        presented = _secret_in(request)
        if presented is None:
            return False
        client_id, secret = presented
        with guess(_http(request), client_id, door="oauth") as right:
            client = self._load_application(client_id, request)
            right.append(client is not None and client.has_secret(secret))
        return right[0]

    def client_authentication_required(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        return _secret_in(request) is not None or super().client_authentication_required(request, *args, **kwargs)

    def validate_grant_type(
        self, client_id: str, grant_type: str, client: Application, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        allowed = super().validate_grant_type(client_id, grant_type, client, request, *args, **kwargs)
        if allowed and grant_type == "client_credentials":
            return client.owner is not None and client.owner.is_active
        return bool(allowed)

    def validate_scopes(
        self, client_id: str, scopes: list[str], client: Application, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """No scope is no subset here: to ask for nothing is `invalid_scope`."""
        request.scopes = list(dict.fromkeys(scopes))
        return bool(scopes) and bool(super().validate_scopes(client_id, scopes, client, request, *args, **kwargs))

    # --- Authorization codes ---

    def is_pkce_required(self, client_id: str, request: Any) -> bool:
        client = self._load_application(client_id, request)
        return bool(client and client.client_type == Application.CLIENT_PUBLIC)

    def _create_authorization_code(self, request: Any, code: dict[str, str], expires: Any = None) -> Any:
        # Of OpenID Connect, which is not offered; a long nonce would not fit its column.
        request.nonce = request.claims = None
        with transaction.atomic():
            _hold(request.user, request.client, errors.AccessDeniedError(request=request))
            row = super()._create_authorization_code(request, {**code, "code": digest_of(code["code"])}, expires)
            _record("oauth_code.issued", request, scope=row.scope)
        return row

    def validate_code(
        self, client_id: str, code: str, client: Application, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Reads the code once; the toolkit reads it four times, and fails when a parallel use has taken it away."""
        grant = Grant.objects.select_related("user").filter(code=code, application=client).first()
        if grant is None:
            _end_reused_code(request)
            return False
        # A verifier without a challenge is a downgraded request (RFC 9700, section 4.8.2).
        downgraded = request.code_verifier is not None and not grant.code_challenge
        if grant.is_expired() or downgraded or not grant.user.is_active:
            return False
        request.grant, request.user, request.scopes = grant, grant.user, grant.scope.split()
        return True

    def get_code_challenge(self, code: str, request: Any) -> str | None:
        return request.grant.code_challenge or None

    def get_code_challenge_method(self, code: str, request: Any) -> str | None:
        return request.grant.code_challenge_method or None

    def confirm_redirect_uri(
        self, client_id: str, code: str, redirect_uri: str, client: Application, *args: Any, **kwargs: Any
    ) -> bool:
        (request,) = args
        if not request.grant.redirect_uri_allowed(redirect_uri):
            # RFC 6749, section 5.2: another redirect is an invalid grant; oauthlib would call the request invalid.
            raise errors.InvalidGrantError("The redirect_uri is not that of the code.", request=request)
        return True

    def invalidate_authorization_code(self, client_id: str, code: str, request: Any, *args: Any, **kwargs: Any) -> None:
        """Nothing is left to do: the code was taken when the tokens were saved."""

    # --- Tokens ---

    def get_original_scopes(self, refresh_token: str, request: Any, *args: Any, **kwargs: Any) -> list[str]:
        """What was granted, as far as the application may still ask for it."""
        granted = super().get_original_scopes(refresh_token, request, *args, **kwargs).split()
        left = [scope for scope in granted if scope in request.client.allowed_scopes]
        if not left:
            raise errors.InvalidScopeError(request=request)
        return left

    def validate_refresh_token(
        self, refresh_token: str, client: Application, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        if super().validate_refresh_token(refresh_token, client, request, *args, **kwargs):
            return bool(request.user.is_active)
        reused = RefreshToken.objects.select_related("user").filter(
            token_checksum=digest_of(refresh_token), application=client, revoked__isnull=False
        )
        for row in reused[:1]:
            # The toolkit has ended the family.
            _record("oauth_refresh_token.reused", request, user=row.user)
        return False

    def save_bearer_token(self, token: dict[str, Any], request: Any, *args: Any, **kwargs: Any) -> None:
        """Saves the tokens, and takes what they were given for, in one transaction.

        The toolkit takes a code after its tokens were saved, so that each of many parallel uses leaves some behind;
        and where a refresh token was used in the meantime it gives the other use's tokens, which hashed it cannot.

        Raises:
            errors.InvalidGrantError: another use of the code or refresh token was faster; what it gave is ended.
        """
        with transaction.atomic():
            acting = request.client.owner if request.grant_type == "client_credentials" else request.user
            _hold(acting, request.client, errors.InvalidGrantError(request=request))
            taken = _take(request)
            if taken:
                self._save_bearer_token(token, request, *args, **kwargs)
                event = "oauth_token.refreshed" if request.grant_type == "refresh_token" else "oauth_token.issued"
                _record(event, request, user=acting, grant_type=request.grant_type, scope=token["scope"])
        if not taken:
            _end_reused(request)
            raise errors.InvalidGrantError(request=request)

    def _create_refresh_token(
        self, request: Any, refresh_token_code: str, access_token: Any, previous_refresh_token: Any
    ) -> Any:
        # The toolkit takes the family from the token before; the first one's comes from the code.
        previous = previous_refresh_token or SimpleNamespace(token_family=family_of(request.code))
        return super()._create_refresh_token(request, refresh_token_code, access_token, previous)

    def revoke_token(self, token: str, token_type_hint: str | None, request: Any, *args: Any, **kwargs: Any) -> None:
        """Ends a token of the asking client with its whole family.

        The toolkit ends the token alone, and so misses the one for which it is being exchanged at that moment.
        """
        own = RefreshToken.objects.filter(application=request.client).select_related("user")
        digest = digest_of(token)
        row = own.filter(token_checksum=digest).first() or own.filter(access_token__token_checksum=digest).first()
        if row is not None:
            RefreshToken.revoke_family(row.token_family)
            _record("oauth_token.revoked", request, user=row.user)
        elif AccessToken.objects.filter(application=request.client, token_checksum=digest).delete()[0]:
            _record("oauth_token.revoked", request, user=request.client.owner)


def _secret_in(request: Any) -> tuple[str, str] | None:
    """The client's id and secret, from Basic (RFC 6749, section 2.3.1) or the body; None without a secret.

    Raises:
        errors.InvalidRequestError: two secrets, or two clients.
        errors.InvalidClientError: a header that cannot be read.
    """
    scheme, _, encoded = (request.headers.get("HTTP_AUTHORIZATION") or "").partition(" ")
    if not scheme:
        return (request.client_id, request.client_secret) if request.client_id and request.client_secret else None
    try:
        pair = b64decode(encoded.strip(), validate=True).decode() if scheme.lower() == "basic" else ""
        client_id, secret = (unquote_plus(part) for part in pair.split(":", 1))
    except ValueError:
        client_id = secret = "\0"
    if "\0" in client_id:
        raise errors.InvalidClientError("The Authorization header is not readable as Basic.", request=request)
    if request.client_secret or request.client_id not in {None, client_id}:
        raise errors.InvalidRequestError("The client authenticates twice.", request=request)
    return client_id, secret


def _http(request: Any) -> HttpRequest:
    """What the limits and the audit trail look at, from oauthlib's request."""
    http_request = HttpRequest()
    http_request.META = request.headers
    http_request.request_id = request.headers["REQUEST_ID"]  # type: ignore[attr-defined]
    return http_request


def _record(event: str, request: Any, *, user: User | None = None, **facts: Any) -> None:
    audit.record(event, user=user or request.user, client_id=request.client.client_id, **facts)


def _hold(user: User, client: Application, otherwise: errors.OAuth2Error) -> None:
    """Keeps the user, its credentials and the application from being ended until the transaction ends.

    First of all locks: who ends one of them has locked it before it comes to the tokens.
    """
    if not (User.objects.hold_with_credentials(user) and Application.objects.hold(client)):
        raise otherwise


def _take(request: Any) -> bool:
    """Takes the code or refresh token that is exchanged, for this use alone: a parallel one waits and gets none."""
    if request.grant_type == "authorization_code":
        return bool(Grant.objects.filter(pk=request.grant.pk).delete()[0])
    if request.grant_type == "refresh_token":
        unused = RefreshToken.objects.select_for_update().filter(pk=request.refresh_token_instance.pk, revoked=None)
        return unused.first() is not None
    return True


def _end_reused(request: Any) -> None:
    if request.grant_type == "authorization_code":
        _end_reused_code(request)
    else:
        RefreshToken.revoke_family(request.refresh_token_instance.token_family)
        _record("oauth_refresh_token.reused", request)


def _end_reused_code(request: Any) -> None:
    """RFC 6749, section 4.1.2: a code that comes again takes the tokens along that it gave."""
    family = RefreshToken.objects.filter(token_family=family_of(request.code), application=request.client)
    first = family.select_related("user").first()
    if first is not None:
        RefreshToken.revoke_family(first.token_family)
        _record("oauth_code.reused", request, user=first.user)
