from config.api.routers import NestedRouter, Router
from payments.views import PaymentViewSet, UserPaymentViewSet
from users.urls import router as users

router = Router()
router.register("payments", PaymentViewSet, basename="payment")
user_payments = NestedRouter(users, "users", lookup="user")
user_payments.register("payments", UserPaymentViewSet, basename="user-payment")
