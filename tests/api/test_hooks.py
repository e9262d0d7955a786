"""DRF's hooks do in a viewset of the service what they do in DRF, on the fast path as on the full stack."""

import json

import pytest
from django.conf import settings as configured
from django.urls import include, path
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.filters import BaseFilterBackend
from rest_framework.pagination import BasePagination
from rest_framework.permissions import BasePermission
from rest_framework.response import Response

import config.urls
from accounts import logins
from config.api.routers import Router
from orders.models import Order
from orders.serializers import OrderSerializer
from orders.views import OrderViewSet
from tests.conftest import new_client
from tests.fastpath.test_calls import build_environ

router = Router()
urlpatterns = [path("api/v<version:version>/", include(router.urls)), *config.urls.urlpatterns]
handler400, handler403 = config.urls.handler400, config.urls.handler403
handler404, handler500 = config.urls.handler404, config.urls.handler500


def probe(view_class):
    """Puts a viewset under its name in small letters."""
    name = view_class.__name__.lower()
    router.register(name, view_class, basename=name)
    return view_class


@pytest.fixture(
    params=[
        pytest.param(True, id="fast", marks=pytest.mark.skipif(not configured.FAST_PATH, reason="not installed")),
        pytest.param(False, id="full"),
    ]
)
def fast(request, settings):
    settings.FAST_PATH = request.param
    urlpatterns[0] = path("api/v<version:version>/", include(router.urls))
    # Sends the signal at which the handler forgets where addresses lead.
    settings.ROOT_URLCONF = __name__
    return request.param


@pytest.fixture
def token(admin):
    return logins.log_in(admin.user).access


@pytest.fixture
def call(fast, token):
    """Sends a request. Returns the response, with `data` where there is any."""

    def send(path, body=None, method=None):
        environ = build_environ(path, token, body)
        environ["REQUEST_METHOD"] = method or environ["REQUEST_METHOD"]
        if fast:
            from config.fastpath import handler

            assert handler.build_request(dict(environ)) is not None
        response = new_client().handler(environ)
        response.json = json.loads(response.content) if response.content else {}
        response.data = response.json.get("data")
        return response

    return send


@pytest.fixture
def orders(admin):
    return [Order.objects.create(user=admin.user, item=item, qty=qty) for item, qty in [("a", 1), ("b", 2), ("c", 3)]]


def items_of(response):
    assert response.status_code == 200, response.content
    return [row["item"] for row in response.data]


@pytest.fixture(autouse=True)
def once_more(call, orders):
    """What is made at the first requests for an action must not be right by chance: each test runs warm."""
    for _ in range(2):
        assert call("/orders").status_code == 200


# --- Routes


@probe
class Acting(OrderViewSet):
    http_method_names = ["get", "post", "head", "options"]

    @action(detail=True)
    def shout(self, request, *args, **kwargs):
        return self.success({"item": self.get_object().item.upper(), "action": self.action})

    @shout.mapping.post
    def shout_twice(self, request, *args, **kwargs):
        # `get_object` asks whether the caller may change it, which nobody may.
        order = self.get_queryset().get(pk=self.kwargs["id"])
        return self.success({"item": order.item * request.data["times"], "action": self.action}, 201)

    @action(detail=False, url_path="newest-first", sortable=("qty",))
    def newest(self, request, *args, **kwargs):
        rows = self.get_queryset().order_by("-id")
        return self.success([*self.represent(rows), list(self.sortable)])

    @action(detail=True, methods=["post"], url_path=r"part/(?P<part>[a-z]+)")
    def part(self, request, *args, **kwargs):
        return self.success(self.kwargs)


def test_action_of_a_resource_gets_an_address(call, orders):
    response = call(f"/acting/{orders[1].pk}/shout")
    assert (response.status_code, response.data) == (200, {"item": "B", "action": "shout"})
    assert response["Cache-Control"] == "private, no-cache"
    assert response["Allow"] == "GET, POST, HEAD, OPTIONS"
    assert call("/acting/999999/shout").status_code == 404
    assert call("/acting/x/shout").status_code == 404


def test_action_has_a_method_of_its_own_for_each_http_method(call, orders):
    response = call(f"/acting/{orders[0].pk}/shout", {"times": 2})
    assert (response.status_code, response.data) == (201, {"item": "aa", "action": "shout_twice"})


def test_action_of_the_collection_gets_an_address_and_attributes_of_its_own(call):
    response = call("/acting/newest-first")
    assert [row["item"] for row in response.data[:3]] == ["c", "b", "a"]
    assert response.data[3] == ["qty"]


def test_action_gets_the_parameters_of_its_address(call):
    response = call("/acting/7/part/left", {})
    assert (response.data["id"], response.data["part"]) == ("7", "left")


def test_action_refuses_other_methods_and_unknown_parameters_like_the_others(call, orders):
    response = call("/acting/newest-first", {})
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert call("/acting/newest-first", method="OPTIONS").data["methods"] == ["GET", "HEAD", "OPTIONS"]
    assert call("/acting/newest-first", method="HEAD").content == b""


def test_collection_beside_actions_is_as_ever(call, orders):
    assert items_of(call("/acting")) == ["a", "b", "c"]
    assert call(f"/acting/{orders[2].pk}").data["item"] == "c"
    assert call("/acting", {"item": "d", "qty": 4}).status_code == 201


# --- Lists


class FirstTwo(BasePagination):
    def paginate_queryset(self, queryset, request, view=None):
        self.start = int(request.query_params.get("start", 0))
        return list(queryset[self.start : self.start + 2])

    def get_paginated_response(self, data):
        return Response({"data": data, "start": self.start})


class LargeOnly(BaseFilterBackend):
    def filter_queryset(self, request, queryset, view):
        return queryset.filter(qty__gt=int(request.query_params.get("above", 1))).order_by("-qty")


@probe
class Paginating(OrderViewSet):
    pagination_class = FirstTwo


@probe
class Unpaginated(OrderViewSet):
    pagination_class = None

    def get_paginated_response(self, data):
        return Response({"data": [*data, "all"]})

    def paginate_queryset(self, queryset):
        return list(queryset)


@probe
class Filtering(OrderViewSet):
    pagination_class = FirstTwo
    filter_backends = (LargeOnly,)


@probe
class FilteringPages(OrderViewSet):
    filter_backends = (*OrderViewSet.filter_backends, LargeOnly)


@probe
class OrderingPages(OrderViewSet):
    def filter_queryset(self, queryset):
        return super().filter_queryset(queryset).order_by("-id")


@probe
class FilteringItself(OrderViewSet):
    def filter_queryset(self, queryset):
        return super().filter_queryset(queryset).exclude(item=self.request.query_params.get("not", ""))


@probe
class Querying(OrderViewSet):
    def get_queryset(self):
        return super().get_queryset().filter(qty__gte=self.request.query_params.get("least", 0))


@probe
class FindingByQuantity(OrderViewSet):
    def get_object(self, *, lock=False):
        return self.get_queryset().get(qty=self.kwargs["id"])


def test_pagination_class_is_asked(call):
    for start, items in ((0, ["a", "b"]), (1, ["b", "c"])):
        response = call(f"/paginating?start={start}")
        assert items_of(response) == items
        assert response.json["start"] == start


def test_hooks_of_the_pages_are_asked(call):
    response = call("/unpaginated")
    assert [row["item"] for row in response.data[:-1]] == ["a", "b", "c"]
    assert response.data[-1] == "all"


def test_filter_backends_are_asked_at_each_request(call):
    assert items_of(call("/filtering")) == ["c", "b"]
    assert items_of(call("/filtering?above=2")) == ["c"]
    assert items_of(call("/filtering?above=0")) == ["c", "b"]


@pytest.mark.parametrize("position", ["page=2", "offset=1"])
def test_pages_of_the_service_follow_filter_backends(call, position):
    for above, items in ((1, ["b"]), (2, []), (0, ["b"])):
        response = call(f"/filteringpages?above={above}&limit=1&{position}")
        assert items_of(response) == items
        assert response.json["meta"]["total"] == 3 - above


def test_pages_of_the_service_follow_filter_queryset(call):
    assert items_of(call("/orderingpages?limit=2")) == ["c", "b"]
    first = call("/orderingpages?limit=2&cursor=")
    second = call(f"/orderingpages?limit=2&cursor={first.json['meta']['nextCursor']}")
    assert (items_of(first), items_of(second)) == (["c", "b"], ["a"])


def test_filter_queryset_is_asked_at_each_request(call):
    assert items_of(call("/filteringitself?not=b")) == ["a", "c"]
    assert items_of(call("/filteringitself?not=c")) == ["a", "b"]
    assert items_of(call("/filteringitself?not=c&sort=qty&order=desc")) == ["b", "a"]


def test_get_queryset_is_asked_at_each_request(call, orders):
    for least, items in ((2, ["b", "c"]), (3, ["c"]), (1, ["a", "b", "c"])):
        response = call(f"/querying?least={least}")
        assert items_of(response) == items
        assert response.json["meta"]["total"] == len(items)
    pk = orders[0].pk
    assert [call(f"/querying/{pk}?least={least}").status_code for least in (1, 2, 1)] == [200, 404, 200]


def test_get_object_is_asked_at_each_request(call):
    assert [call(f"/findingbyquantity/{qty}").data["item"] for qty in (1, 3, 2)] == ["a", "c", "b"]


# --- Serializers


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


# --- Requests and responses


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
