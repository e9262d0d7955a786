from django.conf import settings
from django.urls import URLPattern, path

from config.events.views import EventsView

# Under all three prefixes; nothing without EVENTS.
urlpatterns: list[URLPattern] = [path("events", EventsView.as_view())] if settings.EVENTS else []
