"""What is compiled from a serializer represents rows, and validates bodies, as the serializer itself does."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from django.conf import settings
from django.db import models
from django.utils.module_loading import import_string
from hypothesis import given
from hypothesis import strategies as st
from rest_framework import serializers

from accounts.serializers import APIKeySerializer
from config.api.representation.serializers import ResourceSerializer
from config.api.viewsets import get_readable_fields
from config.fastpath import serializers as fast
from config.http.json import to_json
from orders.models import Order
from orders.serializers import OrderSerializer
from posts.models import Comment, Post
from posts.serializers import PostSerializer
from tests.contract.routes import resource_routes
from users.serializers import UserSerializer

SERIALIZERS = sorted({route.view.serializer_class for route in resource_routes()}, key=lambda each: each.__name__)
ACCELERATED = {import_string(path).serializer_class for path in settings.FAST_PATH_VIEWSETS}
COMPILED = [each for each in SERIALIZERS if each in ACCELERATED and not issubclass(each, APIKeySerializer)]

moments = st.datetimes(
    datetime(1, 1, 2),  # noqa: DTZ001 - the strategy adds zones
    datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
)
long_integers = st.integers(-(2**63), 2**63 - 1)
VALUES = {
    models.BigIntegerField: long_integers,
    models.IntegerField: st.integers(-(2**31), 2**31 - 1),
    models.DecimalField: st.decimals(Decimal("-9999999999.99"), Decimal("9999999999.99"), places=2),
    models.DateTimeField: moments,
    models.BooleanField: st.booleans(),
    models.TextField: st.text(st.characters(exclude_categories=["Cs"])),
    models.CharField: st.text(st.characters(exclude_categories=["Cs"])),
    models.ForeignKey: st.integers(1, 2**63 - 1),
    models.GenericIPAddressField: st.ip_addresses().map(str),
    models.JSONField: st.dictionaries(st.sampled_from(["by", "role"]), st.none() | long_integers | st.just("admin")),
}


def build_rows(model):
    """Rows as the database may give them; any column may be null, as a tombstone's or a later one's."""
    columns = {}
    for field in model._meta.concrete_fields:
        kind = next(kind for kind in type(field).__mro__ if kind in VALUES)
        known = [value for value, _ in field.choices or ()]
        columns[field.attname] = st.none() | (st.sampled_from(known) if known else VALUES[kind])
    rows = st.builds(model, **columns)
    if model is not Post:
        return rows

    def with_comments(post, comments):
        post.first_comments = comments
        return post

    return st.builds(with_comments, rows, st.lists(build_rows(Comment), max_size=3))


def get_names(serializer_class):
    return frozenset(get_readable_fields(serializer_class))


@pytest.mark.parametrize("version", settings.API_VERSIONS, ids=str)
@pytest.mark.parametrize("serializer_class", COMPILED)
@given(data=st.data())
def test_compiled_rows_are_the_serializers(serializer_class, version, data):
    row = data.draw(build_rows(serializer_class.Meta.model))
    known = get_readable_fields(serializer_class)
    names = data.draw(st.just(get_names(serializer_class)) | st.frozensets(st.sampled_from(known), min_size=1))
    renderer = fast.get_renderer(serializer_class, version, names)
    assert renderer
    whole = serializer_class(row, context={"version": version, "principal": None}).data
    expected = {name: value for name, value in whole.items() if name in names}
    assert to_json(renderer.render([row])) == to_json([expected])


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


def test_comments_of_a_post_are_compiled_with_it():
    assert fast.get_renderer(PostSerializer, settings.API_VERSIONS[0], get_names(PostSerializer))
    assert {UserSerializer, PostSerializer} <= set(COMPILED)


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
