"""The hooks of a request and its response, and actions that are replaced."""

from rest_framework.exceptions import PermissionDenied
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
class Refusing(OrderViewSet):
    def check_permissions(self, request):
        super().check_permissions(request)
        if request.query_params.get("refused"):
            raise PermissionDenied("Not today.")


@probe
class Initializing(OrderViewSet):
    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.sortable = ("id",)


@probe
class Finalizing(OrderViewSet):
    def finalize_response(self, request, response, *args, **kwargs):
        response = super().finalize_response(request, response, *args, **kwargs)
        response["X-Status"] = str(response.status_code)
        return response


@probe
class Handling(OrderViewSet):
    def handle_exception(self, exc):
        response = super().handle_exception(exc)
        response["X-Kind"] = type(exc).__name__
        return response


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


def test_check_permissions_is_asked_at_each_request(call):
    assert [call(f"/refusing?{query}").status_code for query in ("", "refused=1", "")] == [200, 403, 200]


def test_initial_may_set_attributes(call):
    assert call("/initializing?sort=id").status_code == 200
    assert call("/initializing?sort=item").status_code == 400


def test_finalize_response_is_asked_for_good_and_bad(call):
    assert [call(f"/finalizing{rest}")["X-Status"] for rest in ("", "/0")] == ["200", "404"]


def test_handle_exception_is_asked(call):
    response = call("/handling/0")
    assert (response.status_code, response["X-Kind"]) == (404, "DomainError")


def test_actions_may_be_replaced_and_extended(call, orders):
    response = call("/answering")
    assert items_of(response) == ["a", "b", "c"]
    assert response.json["count"] == 3
    assert call(f"/answering/{orders[0].pk}").data == "a"
    assert call("/answering", method="OPTIONS").data == {"own": True}
