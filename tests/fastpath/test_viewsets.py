"""The accelerator runs what is asked for much, goes around no hook of a viewset, and leaves others to the reference."""

import pytest
from django.apps import apps
from django.conf import settings
from django.core.signals import request_finished, request_started
from django.db.models import Model
from django.db.models.signals import post_init, pre_init
from django.urls import URLResolver, get_resolver
from django.utils.module_loading import import_string

from config.api.viewsets import ResourceViewSet
from config.fastpath.serializers import get_renderer
from config.fastpath.views import FastViewSet, accelerate
from orders.views import OrderViewSet

# Requests are few, and each of them writes or looks at what is sent: nobody waits for the fast path.
ON_THE_REFERENCE = {
    f"config.events.webhooks.views.{name}" for name in ("WebhookViewSet", "RotationViewSet", "DeliveryViewSet")
}
# What stands in front of a viewset's own method and calls it: where a hook below is overridden, it runs all the same.
CALLED = {
    "check_parent": {"UserPostViewSet"},  # in writes alone, which the reference checks
    "initial": set(),
}
# Hooks that FastViewSet's methods go around.
GONE_AROUND = (
    *("dispatch", "initialize_request", "allowed_methods", "default_response_headers", "get_renderer_context"),
    *("perform_content_negotiation", "get_renderers", "renderer_classes"),
    *("get_content_negotiator", "content_negotiation_class", "build_response", "finalize_response", "finalize_etag"),
    *("represent", "get_serializer", "list", "filter_queryset", "paginate_queryset", "get_paginated_response"),
    *("paginator", "filter_backends", "pagination_class", "get_object", "build_object_query", "create"),
    *("respond_created", "run_create", "get_line_serializer"),
)


def find_views(patterns):
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from find_views(pattern.url_patterns)
        elif issubclass(getattr(pattern.callback, "cls", object), ResourceViewSet):
            yield pattern.callback


def test_every_viewset_of_the_url_map_is_accelerated_or_named():
    classes = [view.cls for view in find_views(get_resolver().url_patterns)]
    found = {f"{each.__module__}.{each.__qualname__}" for each in classes}
    assert found == {*settings.FAST_PATH_VIEWSETS, *ON_THE_REFERENCE}


@pytest.mark.parametrize("path", settings.FAST_PATH_VIEWSETS)
def test_accelerated_viewset_overrides_no_hook_that_is_gone_around(path):
    view_class = import_string(path)
    names = [*GONE_AROUND, *(name for name, excepted in CALLED.items() if view_class.__name__ not in excepted)]
    assert [name for name in names if getattr(view_class, name) is not getattr(ResourceViewSet, name)] == []


def test_every_method_in_front_of_a_viewsets_own_is_looked_at():
    known = {*GONE_AROUND, *CALLED, "get_wanted_answer", "insert"}
    own = {name for name in vars(FastViewSet) if not name.startswith("__")}
    assert own - known == {"wanted_answer"}


@pytest.mark.parametrize("path", settings.FAST_PATH_VIEWSETS)
def test_serializer_of_an_accelerated_viewset_is_compiled(path):
    view_class = import_string(path)
    serializer_class = view_class.serializer_class
    names = frozenset(serializer_class().fields) - {"scopes", *serializer_class.shown_once}
    assert get_renderer(serializer_class, settings.API_VERSIONS[-1], names) is not None


def test_another_viewset_runs_on_the_reference():
    class Foreign(OrderViewSet):
        pass

    assert accelerate(OrderViewSet.as_view({"get": "list"})) is not None
    assert accelerate(Foreign.as_view({"get": "list"})) is None


@pytest.mark.parametrize("model", apps.get_models(), ids=lambda model: model.__name__)
def test_instances_of_the_models_are_made_in_no_way_of_their_own(model):
    assert model.__init__ is Model.__init__
    assert not any(signal.has_listeners(model) for signal in (pre_init, post_init))


def test_signals_of_requests_have_no_receivers_but_djangos():
    """The fast path does by itself what those do, and sends no signals."""
    connected = [reference() for _, reference, *_ in (*request_started.receivers, *request_finished.receivers)]
    assert {f"{each.__module__}.{each.__name__}" for each in connected if each is not None} == {
        "django.core.cache.close_caches",
        "django.core.handlers.base.reset_urlconf",
        "django.db.close_old_connections",
        "django.db.reset_queries",
    }
