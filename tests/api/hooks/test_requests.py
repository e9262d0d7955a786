"""The hooks of a request and its response, and actions that are replaced."""

from rest_framework.permissions import BasePermission
from rest_framework.response import Response

from orders.views import OrderViewSet
from tests.api.hooks.probes import items_of, probe


class NoTea(BasePermission):
    message = "No tea."

    def has_object_permission(self, request, view, obj):
        return obj.item != "a"


@probe
class Permitting(OrderViewSet):
    permission_classes = (*OrderViewSet.permission_classes, NoTea)


@probe
class Answering(OrderViewSet):
    def list(self, request, *args, **kwargs):
        response = super().list(request, *args, **kwargs)
        response.data["count"] = len(response.data["data"])
        return response

    def retrieve(self, request, *args, **kwargs):
        return Response({"data": self.get_object().item})

    def options(self, request, *args, **kwargs):
        return self.success({"own": True})


def test_permission_for_an_object_is_asked(call, orders):
    assert [call(f"/permitting/{order.pk}").status_code for order in orders] == [403, 200, 200]


def test_actions_may_be_replaced_and_extended(call, orders):
    response = call("/answering")
    assert items_of(response) == ["a", "b", "c"]
    assert response.json["count"] == 3
    assert call(f"/answering/{orders[0].pk}").data == "a"
    assert call("/answering", method="OPTIONS").data == {"own": True}
