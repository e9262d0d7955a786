from config.api.routers import NestedRouter, Router
from orders.views import OrderViewSet, UserOrderViewSet
from users.urls import router as users

router = Router()
router.register("orders", OrderViewSet, basename="order")
user_orders = NestedRouter(users, "users", lookup="user")
user_orders.register("orders", UserOrderViewSet, basename="user-order")
