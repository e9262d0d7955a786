from django.urls import URLPattern, path

from accounts import pages
from accounts.oauth import consent, endpoints
from accounts.views import APIKeyViewSet, RotationViewSet
from config.api.routers import NestedRouter, Router

router = Router()
router.register("api-keys", APIKeyViewSet, basename="api-key")
rotations = NestedRouter(router, "api-keys", lookup="api_key")
rotations.register("rotations", RotationViewSet, basename="api-key-rotation")

# Views one by one: the toolkit's own map also opens the registration of applications to every user.
at_root: list[URLPattern] = [
    path("session/login", pages.LoginView.as_view(), name="login"),
    path("session/account", pages.AccountView.as_view(), name="account"),
    path("session/logout", pages.LogoutView.as_view(), name="logout"),
    path("session/reset", pages.PasswordResetRequestView.as_view(), name="password-reset"),
    path("session/reset/<token>", pages.PasswordResetView.as_view()),
    path("session/verify/<token>", pages.EmailVerificationView.as_view()),
    path("oauth/authorize", consent.AuthorizeView.as_view(), name="oauth-authorize"),
    path("oauth/grants", consent.GrantsView.as_view(), name="oauth-grants"),
    path("oauth/token", endpoints.TokenView.as_view(), name="oauth-token"),
    path("oauth/revoke", endpoints.RevokeView.as_view(), name="oauth-revoke"),
    path("oauth/introspect", endpoints.IntrospectView.as_view(), name="oauth-introspect"),
    path(".well-known/oauth-authorization-server", endpoints.MetadataView.as_view(), name="oauth-metadata"),
    path(".well-known/jwks.json", endpoints.KeySetView.as_view(), name="key-set"),
]
