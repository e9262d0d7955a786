from django.conf import settings
from django.db import models
from django.db.models import Q

from config.models import Resource, track_words
from config.postgresql.events import track_events
from config.postgresql.row_counts import track_counts
from users.models import OwnedQuerySet


@track_events("order")
@track_counts()
@track_words("item")
class Order(Resource):
    # PROTECT: an order stays for the books when its user is removed.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="orders", db_index=False)
    archived = ("id", "item", "qty", "created_at")
    item = models.CharField(max_length=200, db_collation="C")
    qty = models.IntegerField()

    objects = OwnedQuerySet.as_manager()

    class Meta(Resource.Meta):
        indexes = [
            models.Index(fields=["user", "id"], name="orders_user"),
            models.Index(fields=["item", "id"], name="orders_item"),
            models.Index(fields=["qty", "id"], name="orders_qty"),
            models.Index(fields=["created_at", "id"], name="orders_created_at"),
            # One user's rows have an index in each order: an owner of a million rows is read in no other way at once.
            models.Index(fields=["user", "item", "id"], name="orders_user_item"),
            models.Index(fields=["user", "qty", "id"], name="orders_user_qty"),
            models.Index(fields=["user", "created_at", "id"], name="orders_user_created_at"),
        ]
        constraints = [
            models.CheckConstraint(condition=~Q(item=""), name="orders_item_given"),
            models.CheckConstraint(condition=Q(qty__range=(1, 1_000_000)), name="orders_qty_range"),
        ]

    def __str__(self) -> str:
        return f"{self.qty} × {self.item}"
