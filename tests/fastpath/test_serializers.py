"""Which serializers are compiled, and that what they keep is nobody else's."""

import pytest
from django.conf import settings
from rest_framework import serializers

from accounts.serializers import APIKeySerializer
from config.api.representation.serializers import ResourceSerializer
from config.api.viewsets import get_readable_fields
from config.fastpath import serializers as fast
from orders.models import Order
from orders.serializers import OrderSerializer
from posts.serializers import PostSerializer
from tests.contract.routes import resource_routes

SERIALIZERS = sorted({route.view.serializer_class for route in resource_routes()}, key=lambda each: each.__name__)


def get_names(serializer_class):
    return frozenset(get_readable_fields(serializer_class))


def reversed_name(self, value):
    return str(value)[::-1]


OwnField = type("OwnField", (serializers.CharField,), {"to_representation": reversed_name})
OwnAttribute = type("OwnAttribute", (serializers.CharField,), {"get_attribute": lambda self, row: "x"})


def test_serializer_with_a_representation_of_its_own_is_not_compiled():
    for serializer_class in [
        type("Shown", (OrderSerializer,), {"to_representation": lambda self, row: {}}),
        type("Chosen", (OrderSerializer,), {"get_fields": lambda self: {}}),
        type("Unknown", (OrderSerializer,), {"item": OwnField(read_only=True)}),
        type("Reached", (OrderSerializer,), {"item": OwnAttribute(read_only=True)}),
        type("Far", (OrderSerializer,), {"item": serializers.CharField(source="user.name", read_only=True)}),
        APIKeySerializer,
    ]:
        assert fast.get_renderer(serializer_class, settings.API_VERSIONS[0], get_names(serializer_class)) is None


def clear_caches():
    for cached in (get_readable_fields, fast.get_renderer, fast._get_fields):
        cached.cache_clear()


def test_field_with_a_representation_of_its_own_is_represented_by_it(user, monkeypatch):
    order = Order.objects.create(user=user.user, item="Tea", qty=1)
    monkeypatch.setitem(OrderSerializer._declared_fields, "item", OwnField())
    clear_caches()
    try:
        assert user.get(f"/orders/{order.pk}").data["item"] == "aeT"
    finally:
        clear_caches()


# --- Validation


def test_serializers_of_one_class_share_no_field():
    accelerated = fast.accelerate(PostSerializer)
    one, another = (accelerated(data={}, context={"version": version}) for version in settings.API_VERSIONS[:2])
    assert list(one.fields) == list(PostSerializer().fields)
    for name, field in one.fields.items():
        assert field is not another.fields[name]
        assert (field.parent, another.fields[name].parent) == (one, another)
        assert (field.context, field.root) == (one.context, one)
    assert one.fields["comments"].child.root is one


@pytest.mark.parametrize("serializer_class", SERIALIZERS)
def test_accelerated_serializer_makes_its_fields_in_no_way_of_its_own(serializer_class):
    names = ("__init__", "fields", "get_fields", "validate_fields", "get_validators", "run_validators")
    own = [name for name in names if getattr(serializer_class, name) is not getattr(ResourceSerializer, name)]
    assert own == []
