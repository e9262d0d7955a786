from config.api.routers import Router
from users.views import UserViewSet

router = Router()
router.register("users", UserViewSet, basename="user")
