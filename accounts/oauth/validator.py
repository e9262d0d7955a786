"""The rules that the authorization server adds to the toolkit's."""

import hashlib
from base64 import b64decode
from types import SimpleNamespace
from urllib.parse import unquote_plus
from uuid import UUID

from django.db import transaction
from oauth2_provider.models import (
    AbstractAccessToken,
    AbstractRefreshToken,
    get_access_token_model,
    get_grant_model,
    get_refresh_token_model,
)
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.common import Request
from oauthlib.oauth2.rfc6749 import errors

from accounts.models import Application, get_digest
from config import audit
from config.api.limits.login_attempts import login_attempt
from users.models import User

AccessToken, Grant, RefreshToken = get_access_token_model(), get_grant_model(), get_refresh_token_model()


def derive_token_family(code_digest: str) -> UUID:
    """The family of the tokens that a code is exchanged for.

    It is derived from the code, so that reuse of a code finds its tokens although the code's row is deleted.
    """
    return UUID(bytes=hashlib.sha256(code_digest.encode()).digest()[:16])


class Validator(OAuth2Validator):
    """oauthlib's hooks. `request` is always oauthlib's, whose `client` is an Application and `user` a User."""

    # --- Clients

    def authenticate_client(self, request: Request, *args: object, **kwargs: object) -> bool:
        """Checks the client's secret, from the header or the body, under the limits on login attempts."""
        credentials = _parse_client_credentials(request)
        if credentials is None:
            return False
        client_id, secret = credentials
        with login_attempt(self.build_http_request(request), client_id, door="oauth") as outcomes:
            outcomes.append(self.validate_client_id(client_id, request) and request.client.has_secret(secret))
        return outcomes[0]

    def client_authentication_required(self, request: Request, *args: object, **kwargs: object) -> bool:
        has_secret = _parse_client_credentials(request) is not None
        return has_secret or super().client_authentication_required(request, *args, **kwargs)

    def validate_grant_type(
        self, client_id: str, grant_type: str, client: Application, request: Request, *args: object, **kwargs: object
    ) -> bool:
        allowed = super().validate_grant_type(client_id, grant_type, client, request, *args, **kwargs)
        if allowed and grant_type == "client_credentials":
            return client.owner is not None and client.owner.is_active
        return bool(allowed)

    def validate_scopes(
        self, client_id: str, scopes: list[str], client: Application, request: Request, *args: object, **kwargs: object
    ) -> bool:
        """Refuses an empty scope, which the toolkit takes for a subset of any.

        Raises:
            errors.InvalidScopeError: that says which scopes there are; oauthlib's own says nothing.
        """
        request.scopes = list(dict.fromkeys(scopes))
        if not scopes or not super().validate_scopes(client_id, scopes, client, request, *args, **kwargs):
            allowed = " ".join(request.client.allowed_scopes) or "none"
            message = "The scope must contain at least one of the application's allowed scopes, and no others"
            raise errors.InvalidScopeError(f"{message}: {allowed}.", request=request)
        return True

    # --- Authorization codes

    def is_pkce_required(self, client_id: str, request: Request) -> bool:
        known = self.validate_client_id(client_id, request)
        return known and request.client.client_type == Application.CLIENT_PUBLIC

    def save_authorization_code(
        self, client_id: str, code: dict[str, str], request: Request, *args: object, **kwargs: object
    ) -> None:
        """Saves the digest of the code.

        Raises:
            errors.AccessDeniedError: the user, its credentials or the application ended in the meantime.
        """
        # Parameters of OpenID Connect, which is not supported. A long nonce would not fit its column.
        request.nonce = request.claims = None
        with transaction.atomic():
            _lock_user_and_client(request.user, request.client, errors.AccessDeniedError(request=request))
            stored = {**code, "code": get_digest(code["code"])}
            super().save_authorization_code(client_id, stored, request, *args, **kwargs)
            if not request.has_redirect_uri:
                Grant.objects.filter(code=stored["code"]).update(redirect_uri="")
            _record("oauth_code.issued", request, scope=" ".join(request.scopes))

    def validate_code(
        self, client_id: str, code: str, client: Application, request: Request, *args: object, **kwargs: object
    ) -> bool:
        """Reads the code once. The toolkit reads it four times, and fails when a parallel use deletes it in between."""
        grant = Grant.objects.select_related("user").filter(code=code, application=client).first()
        if grant is None:
            _end_family_of_code(request)
            return False
        # A verifier without a challenge is a PKCE downgrade (RFC 9700, section 4.8.2).
        is_downgraded = request.code_verifier is not None and not grant.code_challenge
        if grant.is_expired() or is_downgraded or not grant.user.is_active:
            return False
        request.grant, request.user, request.scopes = grant, grant.user, grant.scope.split()
        return True

    def get_code_challenge(self, code: str, request: Request) -> str | None:
        return request.grant.code_challenge or None

    def get_code_challenge_method(self, code: str, request: Request) -> str | None:
        return request.grant.code_challenge_method or None

    def confirm_redirect_uri(
        self, client_id: str, code: str, redirect_uri: str, client: Application, request: Request, **kwargs: object
    ) -> bool:
        """Compares the redirect_uri with that of the authorization request (RFC 6749, section 4.1.3).

        Where the client left it out there it may leave it out here. oauthlib takes a redirect_uri that is left out for
        the client's default one.

        Raises:
            errors.InvalidGrantError: it is another one, or left out here alone (section 5.2; oauthlib's error is
                invalid_request).
        """
        expected = request.grant.redirect_uri
        is_missing = expected and request.using_default_redirect_uri
        if is_missing or redirect_uri != (expected or client.default_redirect_uri):
            raise errors.InvalidGrantError("The redirect_uri does not match that of the code.", request=request)
        return True

    def invalidate_authorization_code(
        self, client_id: str, code: str, request: Request, *args: object, **kwargs: object
    ) -> None:
        """Nothing: `save_bearer_token` has deleted the code."""

    # --- Tokens

    def get_original_scopes(self, refresh_token: str, request: Request, *args: object, **kwargs: object) -> list[str]:
        """The granted scopes that the application is still allowed."""
        granted = super().get_original_scopes(refresh_token, request, *args, **kwargs).split()
        allowed = [scope for scope in granted if scope in request.client.allowed_scopes]
        if not allowed:
            raise errors.InvalidScopeError("None of the granted scopes is still available.", request=request)
        return allowed

    def is_within_original_scope(
        self, request_scopes: list[str], refresh_token: str, request: Request, *args: object, **kwargs: object
    ) -> bool:
        """Called if a refresh requests scopes that are not, or no longer, granted."""
        raise errors.InvalidScopeError("The scope exceeds what was granted.", request=request)

    def validate_refresh_token(
        self, refresh_token: str, client: Application, request: Request, *args: object, **kwargs: object
    ) -> bool:
        if super().validate_refresh_token(refresh_token, client, request, *args, **kwargs):
            return bool(request.user.is_active)
        reused = RefreshToken.objects.select_related("user").filter(
            token_checksum=get_digest(refresh_token), application=client, revoked__isnull=False
        )
        for row in reused[:1]:
            # The toolkit has ended the family.
            _record("oauth_refresh_token.reused", request, user=row.user)
        return False

    def save_bearer_token(self, token: dict[str, str], request: Request, *args: object, **kwargs: object) -> None:
        """Saves the tokens, and consumes the code or refresh token, in one transaction.

        The toolkit deletes a code after the tokens are saved, so that each of several parallel uses leaves tokens. When
        a parallel use was faster with a refresh token, it returns that use's tokens, of which only digests are stored.

        Args:
            token: the response of the token endpoint, with tokens in clear.
            request: the request.
            args: passed on to the toolkit.
            kwargs: passed on to the toolkit.

        Raises:
            errors.InvalidGrantError: a parallel use of the code or refresh token was faster; its tokens are ended.
        """
        with transaction.atomic():
            user = request.client.owner if request.grant_type == "client_credentials" else request.user
            _lock_user_and_client(user, request.client, errors.InvalidGrantError(request=request))
            is_first_use = _consume_grant(request)
            if is_first_use:
                self._save_bearer_token(token, request, *args, **kwargs)
                event = "oauth_token.refreshed" if request.grant_type == "refresh_token" else "oauth_token.issued"
                _record(event, request, user=user, grant_type=request.grant_type, scope=token["scope"])
        if not is_first_use:
            _end_family(request)
            raise errors.InvalidGrantError(request=request)

    def _create_refresh_token(
        self,
        request: Request,
        refresh_token_code: str,
        access_token: AbstractAccessToken,
        previous_refresh_token: AbstractRefreshToken | None,
    ) -> AbstractRefreshToken:
        # The toolkit copies the family of the previous token. The first token's family is derived from the code.
        previous = previous_refresh_token or SimpleNamespace(token_family=derive_token_family(request.code))
        return super()._create_refresh_token(request, refresh_token_code, access_token, previous)

    def revoke_token(
        self, token: str, token_type_hint: str | None, request: Request, *args: object, **kwargs: object
    ) -> None:
        """Ends a token of the client with its whole family.

        The toolkit ends one token, and so misses the one that replaces it in a parallel refresh.

        Args:
            token: an access or refresh token, in clear.
            token_type_hint: ignored; both types are looked up (RFC 7009, section 2.1).
            request: the request.
            args: unused.
            kwargs: unused.
        """
        own = RefreshToken.objects.filter(application=request.client).select_related("user")
        digest = get_digest(token)
        row = own.filter(token_checksum=digest).first() or own.filter(access_token__token_checksum=digest).first()
        if row is not None:
            RefreshToken.revoke_family(row.token_family)
            _record("oauth_token.revoked", request, user=row.user)
        elif AccessToken.objects.filter(application=request.client, token_checksum=digest).delete()[0]:
            _record("oauth_token.revoked", request, user=request.client.owner)


def _parse_client_credentials(request: Request) -> tuple[str, str] | None:
    """The client's id and secret, from Basic (RFC 6749, section 2.3.1) or the body; None without a secret.

    Raises:
        errors.InvalidRequestError: two secrets, or two clients.
        errors.InvalidClientError: the header cannot be parsed.
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
        raise errors.InvalidClientError("The Authorization header is not valid Basic authentication.", request=request)
    if request.client_secret or request.client_id not in {None, client_id}:
        raise errors.InvalidRequestError("The client sent its credentials twice.", request=request)
    return client_id, secret


def _record(event: str, request: Request, *, user: User | None = None, **facts: str) -> None:
    audit.record(event, user=user or request.user, client_id=request.client.client_id, **facts)


def _lock_user_and_client(user: User, client: Application, error: errors.OAuth2Error) -> None:
    """Locks the user with its credentials and the application, so that neither is ended before the transaction.

    These come before all other locks: what ends one of them locks it before the tokens.

    Raises:
        errors.OAuth2Error: `error`, when one of them has been ended.
    """
    if not (User.objects.lock_key_share_with_credentials(user) and Application.objects.lock_key_share(client)):
        raise error


def _consume_grant(request: Request) -> bool:
    """Consumes the code or refresh token that is exchanged. A parallel use waits for the row lock and gets False."""
    if request.grant_type == "authorization_code":
        return bool(Grant.objects.filter(pk=request.grant.pk).delete()[0])
    if request.grant_type == "refresh_token":
        unused = RefreshToken.objects.select_for_update().filter(pk=request.refresh_token_instance.pk, revoked=None)
        return unused.first() is not None
    return True


def _end_family(request: Request) -> None:
    if request.grant_type == "authorization_code":
        _end_family_of_code(request)
    else:
        RefreshToken.revoke_family(request.refresh_token_instance.token_family)
        _record("oauth_refresh_token.reused", request)


def _end_family_of_code(request: Request) -> None:
    """Ends the tokens of a code that is used again (RFC 6749, section 4.1.2)."""
    family = RefreshToken.objects.filter(token_family=derive_token_family(request.code), application=request.client)
    first = family.select_related("user").first()
    if first is not None:
        RefreshToken.revoke_family(first.token_family)
        _record("oauth_code.reused", request, user=first.user)
