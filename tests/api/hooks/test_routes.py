"""Actions of a viewset (`@action`) get addresses."""

from rest_framework.decorators import action

from orders.views import OrderViewSet
from tests.api.hooks.probes import probe


@probe
class Acting(OrderViewSet):
    @action(detail=True)
    def shout(self, request, *args, **kwargs):
        return self.success({"item": self.get_object().item.upper(), "action": self.action})

    @action(detail=False, url_path="newest-first", sortable=("qty",))
    def newest(self, request, *args, **kwargs):
        rows = self.get_queryset().order_by("-id")
        return self.success([*self.represent(rows), list(self.sortable)])


def test_action_of_a_resource_gets_an_address(call, orders):
    response = call(f"/acting/{orders[1].pk}/shout")
    assert (response.status_code, response.data) == (200, {"item": "B", "action": "shout"})
    assert response["Cache-Control"] == "private, no-cache"
    assert response["Allow"] == "GET, HEAD, OPTIONS"
    assert call("/acting/999999/shout").status_code == 404
    assert call("/acting/x/shout").status_code == 404


def test_action_of_the_collection_gets_an_address_and_attributes_of_its_own(call):
    response = call("/acting/newest-first")
    assert [row["item"] for row in response.data[:3]] == ["c", "b", "a"]
    assert response.data[3] == ["qty"]


def test_action_refuses_other_methods_and_unknown_parameters_like_the_others(call, orders):
    response = call("/acting/newest-first", {})
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert call("/acting/newest-first", method="OPTIONS").data["methods"] == ["GET", "HEAD", "OPTIONS"]
    assert call("/acting/newest-first", method="HEAD").content == b""
