from django.urls import URLPattern, path
from rest_framework_nested.routers import NestedSimpleRouter

from config.api.routers import NestedRouter, Router
from config.events.webhooks.views import (
    DeliveryViewSet,
    PingView,
    ReplayView,
    RetryView,
    RotationViewSet,
    WebhookViewSet,
)

router = Router()
router.register("webhooks", WebhookViewSet, basename="webhook")
rotations = NestedRouter(router, "webhooks", lookup="webhook")
rotations.register("rotations", RotationViewSet, basename="webhook-rotation")
deliveries = NestedSimpleRouter(router, "webhooks", lookup="webhook")
deliveries.register("deliveries", DeliveryViewSet, basename="webhook-delivery")

urlpatterns: list[URLPattern] = [
    *router.urls,
    *rotations.urls,
    *deliveries.urls,
    path("webhooks/<webhook_id>/pings", PingView.as_view()),
    path("webhooks/<webhook_id>/replays", ReplayView.as_view()),
    path("webhooks/<webhook_id>/deliveries/<delivery_id>/retries", RetryView.as_view()),
]
