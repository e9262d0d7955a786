from datetime import UTC, datetime
from decimal import Decimal

from config.api.representation.fields import MoneyField
from config.api.representation.serializers import ResourceSerializer
from payments.models import MAX_AMOUNT, MIN_AMOUNT, Payment
from users.serializers import OwnerField


class PaymentSerializer(ResourceSerializer):
    user_id = OwnerField()
    amount = MoneyField(max_digits=12, min_value=MIN_AMOUNT, max_value=MAX_AMOUNT)

    example = {
        "id": 11,
        "user_id": 42,
        "amount": Decimal("12.30"),
        "created_at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
    }

    class Meta:
        model = Payment
        fields = ("id", "user_id", "amount", "created_at")
