from django.conf import settings
from django.urls import URLPattern, path

from config.events.views import EventsView
from config.events.webhooks.urls import urlpatterns as webhooks

# Under all three prefixes; nothing without EVENTS.
urlpatterns: list[URLPattern] = [path("events", EventsView.as_view()), *webhooks] if settings.EVENTS else []
