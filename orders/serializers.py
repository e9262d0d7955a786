from datetime import UTC, datetime

from config.api.representation.fields import IntegerField
from config.api.representation.serializers import ResourceSerializer
from orders.models import Order
from users.serializers import OwnerField


class OrderSerializer(ResourceSerializer):
    user_id = OwnerField()
    qty = IntegerField(min_value=1, max_value=1_000_000, help_text="The quantity.")
    example = {
        "id": 7,
        "user_id": 42,
        "item": "Tea, 100 g",
        "qty": 2,
        "created_at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
    }

    class Meta:
        model = Order
        fields = ("id", "user_id", "item", "qty", "created_at")
        extra_kwargs = {"item": {"help_text": "The ordered item."}}
