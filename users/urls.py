from django.urls import URLPattern, path

from config.api.routers import Router
from users.views import UserEmailVerificationView, UserInvitationView, UserViewSet

router = Router()
router.register("users", UserViewSet, basename="user")
user_messages: list[URLPattern] = [
    path("users/<user_id>/email-verifications", UserEmailVerificationView.as_view()),
    path("users/<user_id>/invitations", UserInvitationView.as_view()),
]
