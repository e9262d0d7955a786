from config.api.serializers import Integer, ResourceSerializer
from orders.models import Order
from users.serializers import OwnerField


class OrderSerializer(ResourceSerializer):
    user_id = OwnerField()
    qty = Integer(min_value=1, max_value=1_000_000)

    class Meta:
        model = Order
        fields = ("id", "user_id", "item", "qty", "created_at")
