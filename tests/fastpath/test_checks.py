"""What runs on the reference instead of the fast path is named, with what it costs."""

import io

import pytest
from django.core.checks import Error, Info, registry, run_checks
from django.core.management import BaseCommand, call_command
from django.core.management.base import SystemCheckError
from django.db import connections
from django.db.models.signals import post_init, post_save, pre_init, pre_save
from django.urls import include, path
from rest_framework import serializers

from config.api.routers import Router
from config.fastpath import checks
from orders.serializers import OrderSerializer
from orders.views import OrderViewSet
from tests.fastpath.test_contract_of_django import Refusing


class Labelled(OrderSerializer):
    label = serializers.SerializerMethodField()

    class Meta(OrderSerializer.Meta):
        fields = (*OrderSerializer.Meta.fields, "label")

    def get_label(self, row):
        return row.item


class Representing(OrderSerializer):
    def to_representation(self, instance):
        return super().to_representation(instance)


class Unchanged(OrderViewSet):
    pass


class OwnQueryset(OrderViewSet):
    def get_queryset(self):
        return super().get_queryset()


class OwnFields(OrderViewSet):
    serializer_class = Labelled


class OwnRepresentation(OrderViewSet):
    serializer_class = Representing


class OwnCreate(OrderViewSet):
    def perform_create(self, serializer):
        serializer.save()


class Other(BaseCommand):
    def handle(self, *args, **options):
        pass


router = Router()
for view_class in (Unchanged, OwnQueryset, OwnFields, OwnRepresentation, OwnCreate):
    router.register(view_class.__name__, view_class, basename=view_class.__name__)
urlpatterns = [path("nested/", include(router.urls))]


@pytest.fixture
def own_urls(settings):
    settings.ROOT_URLCONF = __name__


@pytest.fixture
def registered(monkeypatch):
    """The registry of system checks, put back behind the test."""
    monkeypatch.setattr(registry.registry, "registered_checks", set(registry.registry.registered_checks))


def find(messages, code):
    return [message for message in messages if message.id == code]


def run(command):
    """What a command writes, with the system checks before it."""
    written = io.StringIO()
    options = {"skip_checks": False} if command != "check" else {}
    call_command(command, stdout=written, stderr=written, **options)
    return written.getvalue()


# --- Viewsets


@pytest.mark.usefixtures("own_urls")
def test_viewset_is_named_with_its_hook_and_the_parts_that_it_stops():
    messages = [str(message.msg) for message in find(checks.viewsets(), "fastpath.I002")]
    assert messages == [
        "OwnQueryset overrides get_queryset: ReadList runs on the reference.",
        "OwnQueryset overrides get_queryset: ReadObject runs on the reference.",
    ]


@pytest.mark.usefixtures("own_urls")
def test_serializer_is_named_with_its_fields():
    messages = [str(message.msg) for message in find(checks.viewsets(), "fastpath.I003")]
    assert messages == [
        "Labelled is not compiled: label (SerializerMethodField).",
        "Representing is not compiled: to_representation or get_fields is overridden.",
    ]


@pytest.mark.usefixtures("own_urls")
def test_viewsets_below_includes_are_looked_at():
    assert checks.get_viewsets() == {Unchanged, OwnQueryset, OwnFields, OwnRepresentation, OwnCreate}


def test_viewsets_of_the_service_are_looked_at():
    assert OrderViewSet in checks.get_viewsets()
    assert OrderViewSet.__name__ not in str(checks.viewsets())


@pytest.mark.usefixtures("own_urls", "registered")
def test_only_check_names_viewsets():
    assert "fastpath.I00" not in run(Other())
    written = run("check")
    assert "OwnQueryset overrides get_queryset" in written
    assert "(fastpath.I002)" in written
    assert "(fastpath.I003)" in written


# --- Receivers


@pytest.mark.parametrize(
    ("name", "signal"),
    [("pre_init", pre_init), ("post_init", post_init), ("pre_save", pre_save), ("post_save", post_save)],
)
@pytest.mark.usefixtures("registered")
def test_receiver_of_a_model_is_named(name, signal):
    def note(**options):
        pass

    assert checks.receivers() == []
    signal.connect(note)
    try:
        assert "fastpath.I004" not in run(Other())
        (message,) = checks.receivers()
        written = run("check")
    finally:
        signal.disconnect(note)
    assert f"A receiver of {name} " in message.msg
    assert "(fastpath.I004)" in written


# --- What closes the fast path


def test_service_has_nothing_that_closes_the_fast_path():
    assert [message for message in run_checks() if str(message.id).startswith("fastpath.")] == []


def test_unknown_middleware_is_named_before_every_command(settings):
    name = f"{Refusing.__module__}.{Refusing.__qualname__}"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, name]
    (message,) = find(run_checks(), "fastpath.I001")
    assert isinstance(message, Info)
    assert message.msg == f"Every request takes the full stack: the middleware {name}."
    assert "(fastpath.I001)" in run(Other())


def test_hint_says_where_the_value_of_a_request_may_be_kept(settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{Refusing.__module__}.{Refusing.__qualname__}"]
    (message,) = checks.full_stack()
    assert checks.THREAD_LOCALS in message.hint
    for word in ("ContextVar", "asgiref.local.Local", "threading.local"):
        assert word in checks.THREAD_LOCALS


def test_another_database_engine_is_an_error_that_stops_every_command(monkeypatch):
    monkeypatch.setitem(connections.settings["default"], "ENGINE", "django.db.backends.postgresql")
    (message,) = find(run_checks(), "fastpath.E001")
    assert isinstance(message, Error)
    assert "default uses django.db.backends.postgresql" in message.msg
    with pytest.raises(SystemCheckError, match=r"fastpath\.E001"):
        run(Other())
