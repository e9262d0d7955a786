from decimal import Decimal

from django.conf import settings
from django.db import models
from django.db.models import Q

from config.models import Resource
from config.postgresql.events import track_events
from config.postgresql.row_counts import track_counts
from users.models import OwnedQuerySet

MIN_AMOUNT, MAX_AMOUNT = Decimal("0.01"), Decimal("9999999999.99")


@track_events("payment")
@track_counts()
class Payment(Resource):
    # PROTECT: a payment stays for the books when its user is removed.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="payments", db_index=False
    )
    archived = ("id", "amount", "created_at")
    amount = models.DecimalField(max_digits=12, decimal_places=2)

    objects = OwnedQuerySet.as_manager()

    class Meta(Resource.Meta):
        indexes = [
            models.Index(fields=["user", "id"], name="payments_user"),
            models.Index(fields=["amount", "id"], name="payments_amount"),
            models.Index(fields=["created_at", "id"], name="payments_created_at"),
            # One user's rows have an index in each order: an owner of a million rows is read in no other way at once.
            models.Index(fields=["user", "amount", "id"], name="payments_user_amount"),
            models.Index(fields=["user", "created_at", "id"], name="payments_user_created_at"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(amount__range=(MIN_AMOUNT, MAX_AMOUNT)), name="payments_amount_range")
        ]

    def __str__(self) -> str:
        return f"payment {self.pk} of {self.amount}"
