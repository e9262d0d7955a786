"""The audit trail."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from config.models.erasure import VisibleManager


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    def visible_to(self, principal: Any) -> "AuditEventQuerySet":
        """All of them: config.site.audit says who may ask."""
        return self


class AuditEvent(models.Model):
    """An event of a user or credential, or an export: whose, from where, and never the secret itself."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now(), editable=False)
    event = models.CharField(max_length=40)
    # CASCADE: a user's events are removed with the user.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, db_index=False)
    # No address and no request: they may be somebody else's. Login sessions have a user's own addresses.
    archived = ("at", "event")
    address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=128, default="", blank=True)
    facts = models.JSONField(default=dict)

    objects = VisibleManager.from_queryset(AuditEventQuerySet)()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["user", "id"], name="audit_events_user"),
            models.Index(fields=["at"], name="audit_events_at"),
            models.Index(fields=["event", "at"], name="audit_events_event"),
            models.Index(fields=["event", "id"], name="audit_events_event_id"),
            models.Index(fields=["address", "id"], name="audit_events_address"),
            models.Index(fields=["request_id"], name="audit_events_request", condition=~Q(request_id="")),
        ]

    def __str__(self) -> str:
        return f"{self.event} at {self.at}"
