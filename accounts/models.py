from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

if TYPE_CHECKING:
    from config.api.principal import Principal

PREFIX_CHARACTERS = 12
USE_NOTED_EVERY = timedelta(minutes=1)


class APIKeyQuerySet(models.QuerySet["APIKey"]):
    def visible_to(self, principal: Principal) -> APIKeyQuerySet:
        return self if principal.user.is_administrator else self.of(principal)

    def of(self, principal: Principal) -> APIKeyQuerySet:
        return self.filter(user_id=principal.user.pk)

    def usable(self) -> APIKeyQuerySet:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), revoked_at=None)


class APIKey(models.Model):
    """A key as it is kept: a readable prefix to know it by, and a digest to check it against."""

    id = models.BigAutoField(primary_key=True)
    # CASCADE: keys go when their user is removed.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys", db_index=False
    )
    name = models.CharField(max_length=100, db_collation="C")
    prefix = models.CharField(max_length=PREFIX_CHARACTERS)
    digest = models.BinaryField(max_length=32, unique=True)
    scopes = ArrayField(models.TextField())
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, editable=False)
    rotated_at = models.DateTimeField(null=True, editable=False)

    # The key itself, on the row that was just made and nowhere else.
    key: str

    objects = APIKeyQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = "API key"
        indexes = [models.Index(fields=["user", "id"], name="api_keys_user")]
        constraints = [models.CheckConstraint(condition=~Q(scopes=[]), name="api_keys_scopes_given")]

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"

    def touch(self) -> None:
        """Notes that the key was used, at most once a minute: a write a request would cost more than the read."""
        stale = Q(last_used_at=None) | Q(last_used_at__lt=Now() - USE_NOTED_EVERY)
        if self.last_used_at is None or self.last_used_at < timezone.now() - USE_NOTED_EVERY:
            APIKey.objects.filter(stale, pk=self.pk).update(last_used_at=Now())

    @staticmethod
    def new_key() -> str:
        """A key of 256 random bits. The random part is long enough for a plain digest to keep it secret."""
        return f"urs_{secrets.token_urlsafe(32)}"

    @staticmethod
    def digest_of(key: str) -> bytes:
        return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
