from accounts.views import APIKeyViewSet, RotationViewSet
from config.api.routers import NestedRouter, Router

router = Router()
router.register("api-keys", APIKeyViewSet, basename="api-key")
rotations = NestedRouter(router, "api-keys", lookup="api_key")
rotations.register("rotations", RotationViewSet, basename="api-key-rotation")
