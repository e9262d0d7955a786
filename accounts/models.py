from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Any, ClassVar
from urllib.parse import urlsplit
from uuid import uuid4

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.exceptions import ValidationError
from django.db import Error, models
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from oauth2_provider.models import (
    AbstractAccessToken,
    AbstractApplication,
    AbstractRefreshToken,
    get_access_token_model,
    get_refresh_token_model,
    refresh_token_expire_timedelta,
)

from config.api.principal import SCOPES, Principal
from config.api.representation.text import is_blank
from config.api.versions.usage import uses
from config.models import VisibleManager
from config.postgresql.transactions import is_unavailable, lock_key_share, run_alone

PREFIX_CHARACTERS = 12
USE_NOTED_EVERY = timedelta(minutes=1)
SIMULTANEOUS = timedelta(seconds=10)
_NOTE_ACCESS = """
UPDATE accounts_loginsession SET access_used_at = statement_timestamp()
WHERE id = %s AND access_id = %s AND access_used_at IS NULL
"""


class APIKeyQuerySet(models.QuerySet["APIKey"]):
    def visible_to(self, principal: Principal) -> APIKeyQuerySet:
        return self if principal.user.is_administrator else self.of(principal)

    def of(self, principal: Principal) -> APIKeyQuerySet:
        return self.filter(user_id=principal.user.pk)

    def usable(self) -> APIKeyQuerySet:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), revoked_at=None)


class UsedModel(models.Model):
    """Records its last use, so that its user knows what can be revoked."""

    last_used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        abstract = True

    def note_use(self) -> None:
        """Notes the use, at most once a minute. It is written later: a read waits for no write, nor fails by one."""
        if self.last_used_at is None or self.last_used_at < timezone.now() - USE_NOTED_EVERY:
            uses.note(type(self), self.pk)

    @classmethod
    def write_uses(cls, keys: Collection[Any]) -> None:
        """Writes down that rows were used, but for those that others change at this moment; call it in a transaction.

        Args:
            keys: the primary keys of the rows.
        """
        is_due = Q(last_used_at=None) | Q(last_used_at__lt=Now() - USE_NOTED_EVERY)
        free = cls._base_manager.filter(is_due, pk__in=keys).select_for_update(skip_locked=True, no_key=True)
        cls._base_manager.filter(pk__in=free.values("pk")).update(last_used_at=Now())


class APIKey(UsedModel):
    """A key as it is stored: a readable prefix to know it by, and a digest to check it against."""

    id = models.BigAutoField(primary_key=True)
    # CASCADE: keys go when their user is removed.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys", db_index=False
    )
    archived = ("id", "name", "prefix", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at")
    name = models.CharField(max_length=100, db_collation="C")
    prefix = models.CharField(max_length=PREFIX_CHARACTERS)
    digest = models.BinaryField(max_length=32, unique=True)
    scopes = ArrayField(models.TextField())
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, editable=False)
    rotated_at = models.DateTimeField(null=True, editable=False)

    # The key itself, on the row that was just made and nowhere else.
    key: str

    objects = VisibleManager.from_queryset(APIKeyQuerySet)()

    class Meta:
        ordering = ["id"]
        verbose_name = "API key"
        indexes = [
            models.Index(fields=["user", "id"], name="api_keys_user"),
            models.Index(fields=["name", "id"], name="api_keys_name"),
            models.Index(fields=["created_at", "id"], name="api_keys_created_at"),
            # One user's keys have an index in each order: a user of very many keys is read in no other way at once.
            models.Index(fields=["user", "name", "id"], name="api_keys_user_name"),
            models.Index(fields=["user", "created_at", "id"], name="api_keys_user_created_at"),
            # For the search by the beginning of a key, in whatever collation the database has.
            models.Index(fields=["prefix"], opclasses=["varchar_pattern_ops"], name="api_keys_prefix"),
            models.Index(fields=["id"], name="api_keys_revoked", condition=~Q(revoked_at=None)),
        ]
        constraints = [models.CheckConstraint(condition=~Q(scopes=[]), name="api_keys_scopes_given")]

    def __str__(self) -> str:
        return f"{self.prefix}…"


class LoginSession(models.Model):
    """A login and all tokens that came of it: at any time one refresh token of it is valid, which is used once.

    An access token names its session, which is read at each request: so the session ends for all its tokens at once.
    """

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    # CASCADE: sessions go when their user is removed.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="login_sessions", db_index=False
    )
    archived = ("id", "created_at", "rotated_at", "expires_at", "ended_at", "address", "user_agent")
    # As in Django's own sessions: another password, or the end of all credentials, is the end of the session.
    password_digest = models.CharField(max_length=64)
    refresh_digest = models.BinaryField(max_length=32)
    # The token that was exchanged for the valid refresh token; empty until the first rotation.
    previous_digest = models.BinaryField(max_length=32, null=True)
    # The access token of the newest pair, and when it was first used. Only looked after once there was a rotation.
    access_id = models.CharField(max_length=32)
    access_used_at = models.DateTimeField(null=True, editable=False)
    rotated_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    # The end of the newest refresh token, and with it of all others. The row of an ended session stays until then.
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, editable=False)
    # The address of the client that logged in.
    address = models.CharField(max_length=45, default="", editable=False)
    user_agent = models.CharField(max_length=300, default="", editable=False)

    objects = VisibleManager()

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["user", "-created_at"], name="login_sessions_user"),
            models.Index(fields=["expires_at"], name="login_sessions_expires_at"),
        ]

    def __str__(self) -> str:
        return f"login of user {self.user_id} at {self.created_at}"

    @property
    def is_usable(self) -> bool:
        user, digest = self.user, self.password_digest
        if self.ended_at is not None or not user.is_active:
            return False
        return compare_digest(digest, user.get_session_auth_hash()) or any(
            compare_digest(digest, earlier) for earlier in user.get_session_auth_fallback_hash()
        )

    def rotate(self, digest: bytes, *, refresh_digest: bytes, access_id: str, expires_at: datetime) -> bool:
        """Puts a new pair in the place of the valid one. False when `digest` is not that of the valid refresh token.

        Of simultaneous calls one comes first; the others wait for its row and then find another digest in it.
        """
        present = LoginSession.objects.filter(pk=self.pk, refresh_digest=digest, ended_at=None)
        return bool(
            present.update(
                refresh_digest=refresh_digest,
                previous_digest=digest,
                access_id=access_id,
                access_used_at=None,
                rotated_at=Now(),
                expires_at=expires_at,
                # With the current SECRET_KEY, so that the session outlives an earlier one.
                password_digest=self.user.get_session_auth_hash(),
            )
        )

    def note_use(self, access_id: str) -> None:
        """Notes the first use of an access token that a rotation gave: at most one write a rotation.

        At once, since `end_if_reused` asks for it. Where the database does not take it, the next use is noted.
        """
        if self.previous_digest and self.access_used_at is None and access_id == self.access_id:
            try:
                run_alone(_NOTE_ACCESS, [self.pk, access_id], is_durable=True)
            except Error as error:
                if not is_unavailable(error):
                    raise

    def end(self) -> bool:
        """Ends the session, access tokens too. False when it was over."""
        return bool(LoginSession.objects.filter(pk=self.pk, ended_at=None).update(ended_at=Now()))

    def end_if_reused(self, digest: bytes) -> bool:
        """Ends the session because one of its used refresh tokens was presented again. False when it lives on.

        It lives on when the token was used a moment ago and nothing was done with what it was given for: then a
        client sent it twice at once, or never got the answer. One statement, so that no rotation comes in between.
        """
        simultaneous = Q(previous_digest=digest, rotated_at__gt=Now() - SIMULTANEOUS, access_used_at=None)
        reused = LoginSession.objects.filter(pk=self.pk, ended_at=None).exclude(refresh_digest=digest)
        return bool(reused.exclude(simultaneous).update(ended_at=Now()))


class Session(UsedModel, AbstractBaseSession):
    """A browser's session: Django's, with its user. Its key, a secret, is no name for it: `public_id` is."""

    # CASCADE: sessions go when their user is removed.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="sessions", db_index=False
    )
    archived = ("public_id", "last_used_at", "expire_date")
    public_id = models.UUIDField(unique=True, editable=False)

    objects: ClassVar[Any] = VisibleManager()

    class Meta:
        verbose_name = "browser session"
        indexes = [models.Index(fields=["user", "-last_used_at"], name="sessions_user")]

    def __str__(self) -> str:
        return f"browser session of user {self.user_id}"


LOOPBACK = {"localhost", "127.0.0.1", "::1"}
LOOPBACK_ADDRESSES = LOOPBACK - {"localhost"}
# A host and a port, and nothing that a policy or a person could misread, such as a user name in front of it.
_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]+")


def takes_loopback_redirects() -> bool:
    return settings.LOCAL or settings.DEBUG


def is_redirect_permitted(uri: str) -> bool:
    """Redirects go to https; on your own machine also to http on loopback (RFC 8252, section 7.3)."""
    parts = urlsplit(uri)
    if not _HOST.fullmatch(parts.netloc):
        return False
    if parts.scheme == "http":
        return takes_loopback_redirects() and parts.hostname in LOOPBACK
    return parts.scheme == "https"


def is_same_loopback(registered: str, uri: str) -> bool:
    """Whether two addresses on loopback differ in nothing but the port, which a native application cannot choose."""
    one, other = urlsplit(registered), urlsplit(uri)
    if one.scheme != "http" or one.hostname not in LOOPBACK_ADDRESSES:
        return False
    return one._replace(netloc=one.hostname) == other._replace(netloc=other.hostname or "")


def living_refresh_tokens(now: datetime) -> QuerySet[AbstractRefreshToken]:
    """The refresh tokens of OAuth that can be used: neither used nor ended, and not past their end.

    Their end is counted from that of the access token given with them, as the toolkit does when one is presented.
    """
    return get_refresh_token_model().objects.filter(
        revoked=None, access_token__expires__gt=now - refresh_token_expire_timedelta()
    )


def past_refresh_tokens(now: datetime) -> QuerySet[AbstractRefreshToken]:
    """The tokens of families in which none is valid.

    A used token stays as long as its family lives: its reuse ends the family. The toolkit's `cleartokens` deletes it
    after 14 days, and from then on takes a stolen token for an unknown one.
    """
    living = living_refresh_tokens(now)
    # A token without a family is compared by its own key: a comparison with NULL matches no row.
    family, itself = living.filter(token_family=OuterRef("token_family")), living.filter(pk=OuterRef("pk"))
    return get_refresh_token_model().objects.filter(~Exists(family), ~Exists(itself))


def past_access_tokens(now: datetime) -> QuerySet[AbstractAccessToken]:
    """The expired tokens, except those from whose expiry a valid refresh token derives its own."""
    living = living_refresh_tokens(now).filter(access_token=OuterRef("pk"))
    return get_access_token_model().objects.filter(~Exists(living), expires__lte=now)


def is_living_oauth_token(token: str) -> bool:
    """Whether a text is an access or refresh token of OAuth that can be used."""
    now, own = timezone.now(), {"token_checksum": get_digest(token)}
    access_tokens = get_access_token_model().objects.filter(expires__gt=now)
    return any(tokens.filter(**own).exists() for tokens in (living_refresh_tokens(now), access_tokens))


class ApplicationQuerySet(models.QuerySet["Application"]):
    def lock_key_share(self, application: Application) -> bool:
        """Keeps an application from being removed until the transaction ends.

        False when it is removed already, or has another secret than that which was looked at.
        """
        same = self.filter(pk=application.pk, client_secret=application.client_secret)
        return bool(lock_key_share(same.order_by()))


def get_scope_choices() -> list[tuple[str, str]]:
    return [(scope, scope) for scope in SCOPES]


class Application(AbstractApplication):
    """A client of the authorization server (RFC 6749, section 2)."""

    # Fields of the toolkit's model that this service does not support: no columns, but values for its code to read.
    user = None
    post_logout_redirect_uris = allowed_origins = algorithm = ""
    hash_client_secret = True
    skip_authorization = False
    registration_source = AbstractApplication.RegistrationSource.MANUAL
    cimd_expires_at = None

    name = models.CharField(max_length=100)
    # CASCADE: an application and all tokens it holds go when its owner is removed, as the owner's keys do.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="oauth_applications",
        null=True,
        blank=True,
        help_text="The user that client-credentials tokens act for, with that user's role.",
    )
    archived = ("id", "name", "client_id", "redirect_uris", "allowed_scopes", "created", "updated")
    authorization_grant_type = models.CharField(
        max_length=18,
        choices=[
            (AbstractApplication.GRANT_AUTHORIZATION_CODE, "Authorization code"),
            (AbstractApplication.GRANT_CLIENT_CREDENTIALS, "Client credentials"),
        ],
    )
    # A digest: the secret has 256 random bits, for which a password hasher would only cost time (0.2 s a request).
    client_secret = models.CharField(max_length=64, blank=True, editable=False)
    allowed_scopes = ArrayField(
        # Called, since the settings leave some out: a migration must not depend on them.
        models.TextField(choices=get_scope_choices),
        default=list,
        blank=True,
    )

    objects: ClassVar[Any] = VisibleManager.from_queryset(ApplicationQuerySet)()

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["owner", "id"], name="applications_owner")]
        verbose_name = "OAuth application"

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        super().clean()
        problems = {}
        if not all(map(is_redirect_permitted, self.redirect_uris.split())):
            problems["redirect_uris"] = "Redirect URIs must be https addresses of a plain host."
        if not self.name.isprintable() or is_blank(self.name):
            problems["name"] = "The name is blank or contains an invisible character."
        if self.authorization_grant_type == self.GRANT_CLIENT_CREDENTIALS:
            if self.owner is None:
                problems["owner"] = "Choose an owner: client-credentials tokens act as this user."
            if self.client_type == self.CLIENT_PUBLIC:
                problems["client_type"] = "Client credentials require a confidential client."
        if problems:
            raise ValidationError(problems)

    def redirect_uri_allowed(self, uri: str) -> bool:
        """Exactly, but for the port of loopback (RFC 9700, section 4.1.3); the toolkit lets a query be added."""
        registered = self.redirect_uris.split()
        return is_redirect_permitted(uri) and (
            uri in registered or any(is_same_loopback(one, uri) for one in registered)
        )

    def give_secret(self) -> str | None:
        """Gives a confidential client a new secret, not saved yet. Returns it, None for a public client."""
        if self.client_type == self.CLIENT_PUBLIC:
            self.client_secret = ""
            return None
        secret = secrets.token_urlsafe(32)
        self.client_secret = get_digest(secret)
        return secret

    def has_secret(self, secret: str) -> bool:
        return constant_time_compare(get_digest(secret), self.client_secret)


def hash_secret(secret: str) -> bytes:
    """How keys and tokens are stored, as digests. All are random, so a plain digest is enough to keep them secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def get_digest(secret: str) -> str:
    """How the secrets of OAuth are stored."""
    return hash_secret(secret).hex()
