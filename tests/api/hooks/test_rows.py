"""The hooks that say which rows a list and a single read show."""

import pytest
from rest_framework.filters import BaseFilterBackend

from orders.models import Order
from orders.views import OrderViewSet
from tests.api.hooks.probes import items_of, probe


class Large(BaseFilterBackend):
    def filter_queryset(self, request, queryset, view):
        return queryset.filter(qty__gt=1)


class AnyoneMayChange(OrderViewSet.permission_classes[0]):
    @staticmethod
    def may_change(principal, row):
        return True


@probe
class LimitingRows(OrderViewSet):
    http_method_names = ["get", "patch", "delete", "head", "options"]
    filter_backends = (*OrderViewSet.filter_backends, Large)
    permission_classes = [AnyoneMayChange]


def test_filter_backend_that_limits_rows_limits_single_reads_and_writes(call, orders):
    """As in DRF, whose `get_object` filters: what a list does not show must not be reached by its id."""
    assert items_of(call("/limitingrows")) == ["b", "c"]
    statuses = {
        method: [call(f"/limitingrows/{order.pk}", body, method).status_code for order in orders[:2]]
        for method, body in (("GET", None), ("HEAD", None), ("PATCH", {"qty": 5}), ("DELETE", None))
    }
    assert statuses == {"GET": [404, 200], "HEAD": [404, 200], "PATCH": [404, 200], "DELETE": [404, 204]}
    assert set(Order.objects.values_list("item", "qty")) == {("a", 1), ("c", 3)}


def test_parameters_of_lists_mean_nothing_to_a_single_row(call, admin):
    """Version 1 ignores the parameters that it does not know."""
    response = call(f"/users/{admin.user.pk}?status=inactive&sort=none&order=none&role=nobody")
    assert (response.status_code, response.data["id"]) == (200, admin.user.pk)


# An email that no user can have: Django sees that no row can match, before it asks the database.
NOBODY = "email=%F1%98%93%AD"
FAR = (f"page={2**62}", "offset=20000", "sort=created_at&page=600")


@pytest.mark.parametrize("version", [1, 2])
def test_page_of_a_list_that_is_empty_before_the_database_is_asked(call, version):
    queries = {*FAR, "", "page=2", "page=485", "offset=1000", "cursor=", "limit=100&page=11"}
    queries |= {f"role=user&sort=name&{page}" for page in ("page=2", "page=485", "cursor=")}
    if version == 2:
        queries |= {
            f"{filters}&{page}" for filters in ("sort=id&id[gt]=1", "id=1,2") for page in ("page=485", "cursor=")
        }
    for query in queries:
        response = call(f"/users?{NOBODY}&{query}", version=version)
        assert (response.status_code, response.data) == (200, []), query
        pages_by_cursor = "cursor" in query or (version == 2 and "page" not in query and "offset" not in query)
        empty = {"nextCursor": None, "prevCursor": None, "hasMore": False} if pages_by_cursor else {"total": 0}
        assert empty.items() <= response.json["meta"].items(), query
        assert response.json["_links"].keys() <= {"self", "first"}, query


@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/csv"])
def test_stream_of_a_list_that_is_empty_before_the_database_is_asked(call, accept):
    response = call(f"/users?{NOBODY}", version=2, ACCEPT=accept)
    assert (response.status_code, response.content.count(b"\n")) == (200, accept == "text/csv")
