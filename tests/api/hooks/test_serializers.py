"""The hooks of serializers, and of the viewset that makes them."""

from rest_framework import serializers

from orders.models import Order
from orders.serializers import OrderSerializer
from orders.views import OrderViewSet
from tests.api.hooks.probes import probe


class Brief(OrderSerializer):
    class Meta(OrderSerializer.Meta):
        fields = ("id", "item")


class Fussy(OrderSerializer):
    def validate(self, attrs):
        if attrs["item"] == "none":
            raise serializers.ValidationError({"item": "There must be one."})
        return {**attrs, "item": attrs["item"].strip().title()}

    def validate_qty(self, value):
        if value % 2:
            raise serializers.ValidationError("Must be even.")
        return value * 10


@probe
class Choosing(OrderViewSet):
    def get_serializer_class(self):
        return Brief if self.request.query_params.get("brief") else OrderSerializer


@probe
class Validating(OrderViewSet):
    serializer_class = Fussy


@probe
class Performing(OrderViewSet):
    def perform_create(self, serializer):
        serializer.save(item=f"{serializer.validated_data['item']} for {self.request.query_params.get('whom', 'me')}")


def test_get_serializer_class_is_asked_at_each_request(call, orders):
    pk = orders[0].pk
    for _ in range(2):
        assert [row.keys() for row in call("/choosing?brief=1").data] == [{"id", "item"}] * 3
        assert all("qty" in row for row in call("/choosing").data)
        assert "qty" not in call(f"/choosing/{pk}?brief=1").data
        assert "qty" in call(f"/choosing/{pk}").data


def test_validation_of_the_serializer_is_asked(call):
    assert call("/validating", {"item": " tea ", "qty": 4}).data["item"] == "Tea"
    assert Order.objects.latest("id").qty == 40
    for body, field in (({"item": "none", "qty": 4}, "item"), ({"item": "tea", "qty": 3}, "qty")):
        response = call("/validating", body)
        assert response.status_code == 400
        assert [detail["field"] for detail in response.json["error"]["details"]] == [field]
    assert Order.objects.count() == 4


def test_perform_create_is_asked_at_each_request(call):
    for whom in ("you", "me"):
        assert call(f"/performing?whom={whom}", {"item": "tea", "qty": 1}).data["item"] == f"tea for {whom}"
        assert Order.objects.latest("id").item == f"tea for {whom}"
