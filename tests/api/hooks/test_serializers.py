"""The hooks of serializers, and of the viewset that makes them."""

from rest_framework import serializers

from orders.models import Order
from orders.serializers import OrderSerializer
from orders.views import OrderViewSet
from tests.api.hooks.probes import probe


class Brief(OrderSerializer):
    class Meta(OrderSerializer.Meta):
        fields = ("id", "item")


class Own(OrderSerializer):
    def to_representation(self, instance):
        return {**super().to_representation(instance), "label": f"{instance.qty} x {instance.item}"}


class Computed(OrderSerializer):
    label = serializers.SerializerMethodField()
    owner = serializers.CharField(source="user.name", read_only=True)

    class Meta(OrderSerializer.Meta):
        fields = (*OrderSerializer.Meta.fields, "label", "owner")

    def get_label(self, row):
        return f"{row.qty} x {row.item} for {self.context['view'].action}"


class Fussy(OrderSerializer):
    def validate(self, attrs):
        if attrs["item"] == "none":
            raise serializers.ValidationError({"item": "There must be one."})
        return {**attrs, "item": attrs["item"].strip().title()}

    def validate_qty(self, value):
        if value % 2:
            raise serializers.ValidationError("Must be even.")
        return value * 10


class Creating(OrderSerializer):
    def create(self, validated_data):
        validated_data["item"] += " of create()"
        return super().create(validated_data)


@probe
class Revising(OrderViewSet):
    def represent(self, rows):
        return [{**shown, "number": row.row_version} for row, shown in zip(rows, super().represent(rows), strict=True)]


@probe
class Choosing(OrderViewSet):
    def get_serializer_class(self):
        return Brief if self.request.query_params.get("brief") else OrderSerializer


@probe
class ChoosingByAction(OrderViewSet):
    def get_serializer_class(self):
        return Brief if self.action == "list" else OrderSerializer


@probe
class ChoosingByCaller(OrderViewSet):
    def get_serializer_class(self):
        return Brief if self.principal and self.principal.user.name == "Ada Admin" else OrderSerializer


@probe
class Representing(OrderViewSet):
    serializer_class = Own


@probe
class Computing(OrderViewSet):
    serializer_class = Computed


@probe
class Validating(OrderViewSet):
    serializer_class = Fussy


@probe
class Adding(OrderViewSet):
    serializer_class = Creating


@probe
class Performing(OrderViewSet):
    def perform_create(self, serializer):
        serializer.save(item=f"{serializer.validated_data['item']} for {self.request.query_params.get('whom', 'me')}")


@probe
class InContext(OrderViewSet):
    class Serializer(OrderSerializer):
        def to_representation(self, instance):
            return {**super().to_representation(instance), "least": self.context["least"]}

    serializer_class = Serializer

    def get_serializer_context(self):
        return {**super().get_serializer_context(), "least": self.request.query_params.get("least")}


@probe
class MakingSerializers(OrderViewSet):
    def get_serializer(self, *args, **kwargs):
        serializer = super().get_serializer(*args, **kwargs)
        getattr(serializer, "child", serializer).fields.pop("qty", None)
        return serializer


def test_get_serializer_class_is_asked_at_each_request(call, orders):
    pk = orders[0].pk
    for _ in range(2):
        assert [row.keys() for row in call("/choosing?brief=1").data] == [{"id", "item"}] * 3
        assert all("qty" in row for row in call("/choosing").data)
        assert "qty" not in call(f"/choosing/{pk}?brief=1").data
        assert "qty" in call(f"/choosing/{pk}").data


def test_get_serializer_class_knows_the_action(call, orders):
    assert [row.keys() for row in call("/choosingbyaction").data] == [{"id", "item"}] * 3
    assert call(f"/choosingbyaction/{orders[0].pk}").data["qty"] == 1
    assert call("/choosingbyaction", {"item": "d", "qty": 4}).data["qty"] == 4


def test_get_serializer_class_knows_the_caller(call, orders):
    for _ in range(2):
        assert [row.keys() for row in call("/choosingbycaller").data] == [{"id", "item"}] * 3
        assert "qty" not in call(f"/choosingbycaller/{orders[0].pk}").data


def test_to_representation_is_asked(call, orders):
    assert [row["label"] for row in call("/representing").data] == ["1 x a", "2 x b", "3 x c"]
    assert call(f"/representing/{orders[2].pk}").data["label"] == "3 x c"
    assert call("/representing", {"item": "d", "qty": 4}).data["label"] == "4 x d"


def test_fields_of_any_kind_are_shown(call, orders):
    assert [row["label"] for row in call("/computing").data] == ["1 x a for list", "2 x b for list", "3 x c for list"]
    assert {row["owner"] for row in call("/computing").data} == {"Ada Admin"}
    assert call(f"/computing/{orders[0].pk}").data["label"] == "1 x a for retrieve"
    assert call(f"/computing/{orders[0].pk}?fields=owner").data == {"owner": "Ada Admin"}


def test_validation_of_the_serializer_is_asked(call):
    assert call("/validating", {"item": " tea ", "qty": 4}).data["item"] == "Tea"
    assert Order.objects.latest("id").qty == 40
    for body, field in (({"item": "none", "qty": 4}, "item"), ({"item": "tea", "qty": 3}, "qty")):
        response = call("/validating", body)
        assert response.status_code == 400
        assert [detail["field"] for detail in response.json["error"]["details"]] == [field]
    assert Order.objects.count() == 4


def test_create_of_the_serializer_is_asked(call):
    response = call("/adding", {"item": "tea", "qty": 1})
    assert (response.status_code, response.data["item"]) == (201, "tea of create()")
    assert Order.objects.latest("id").item == "tea of create()"


def test_perform_create_is_asked_at_each_request(call):
    for whom in ("you", "me"):
        assert call(f"/performing?whom={whom}", {"item": "tea", "qty": 1}).data["item"] == f"tea for {whom}"
        assert Order.objects.latest("id").item == f"tea for {whom}"


def test_context_of_the_serializer_is_made_at_each_request(call):
    assert [call(f"/incontext?least={least}").data[0]["least"] for least in "12"] == ["1", "2"]


def test_get_serializer_is_asked(call, orders):
    assert ["qty" in row for row in call("/makingserializers").data] == [False] * 3
    assert "qty" not in call(f"/makingserializers/{orders[0].pk}").data


def test_representation_may_read_any_column_of_a_row(call):
    assert [row["number"] for row in call("/revising?fields=item").data] == [1, 1, 1]
    for position in ("page=1", "cursor="):
        assert [row["number"] for row in call(f"/revising?{position}").data] == [1, 1, 1]
