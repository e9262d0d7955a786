"""The URL map. The same views serve resources under three prefixes; everything else is at the root only."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path, register_converter
from django.views.generic import RedirectView

import accounts.urls
import orders.urls
import payments.urls
import posts.urls
import users.urls
from accounts.views import (
    EmailVerificationView,
    LoginView,
    LogoutView,
    PasswordResetRequestView,
    PasswordResetView,
    ProtectedView,
    RefreshView,
    SessionsView,
    SessionView,
)
from config.api.versions.versioning import VersionConverter
from config.events.urls import urlpatterns as events
from config.site.audit import list_audit_events
from config.site.documentation import GuideView, ReferenceView, SearchIndexView, VersionsPageView
from config.site.entry import EntryView, VersionsView
from config.site.health import LiveView, ReadyView
from config.site.metrics import MetricsView
from config.site.redirects import redirect_without_trailing_slash
from config.site.requests_file import PostmanView, RequestsFileView
from config.site.schema import SchemaView
from users.views import ArchiveView

register_converter(VersionConverter, "version")

resources: list[URLPattern | URLResolver] = [
    *users.urls.router.urls,
    *users.urls.user_messages,
    *orders.urls.router.urls,
    *orders.urls.user_orders.urls,
    *payments.urls.router.urls,
    *payments.urls.user_payments.urls,
    *posts.urls.router.urls,
    *posts.urls.user_posts.urls,
    *posts.urls.post_comments.urls,
    *posts.urls.comments.urls,
    *accounts.urls.router.urls,
    *accounts.urls.rotations.urls,
]
# Under all three prefixes.
everywhere: list[URLPattern | URLResolver] = [
    *resources,
    path("users/<user_id>/archive", ArchiveView.as_view()),
    *events,
    path("audit-events", list_audit_events),
    path("sessions", SessionsView.as_view()),
    path("sessions/<id>", SessionView.as_view()),
    path("versions", VersionsView.as_view()),
]
under_api: list[URLPattern | URLResolver] = [
    *everywhere,
    path("login", LoginView.as_view()),
    path("token/refresh", RefreshView.as_view()),
    path("logout", LogoutView.as_view()),
    path("protected", ProtectedView.as_view()),
    path("password-resets", PasswordResetRequestView.as_view()),
    path("password-resets/<token>", PasswordResetView.as_view()),
    path("email-verifications/<token>", EmailVerificationView.as_view()),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", EntryView.as_view()),
    path("api", EntryView.as_view()),
    path("api/v<version:version>", EntryView.as_view()),
    # The canonical form first: each address is compared with one pattern after the other.
    path("api/v<version:version>/", include(under_api)),
    path("api/", include(under_api)),
    path("", include(everywhere)),
    path("openapi.json", SchemaView.as_view(), name="schema"),
    path("docs", ReferenceView.as_view(), name="documentation"),
    path("docs/guide", RedirectView.as_view(url="/docs/first-request")),
    path("docs/search.json", SearchIndexView.as_view(), name="search-index"),
    path("docs/requests.http", RequestsFileView.as_view(), name="requests-file"),
    path("docs/postman.json", PostmanView.as_view(), name="postman"),
    path("docs/versions", VersionsPageView.as_view(), {"page": "versions"}),
    path("docs/<slug:page>", GuideView.as_view()),
    path("health/live", LiveView.as_view()),
    path("health/ready", ReadyView.as_view()),
    path("metrics", MetricsView.as_view()),
    path("", include(accounts.urls.at_root)),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    re_path(r"^(?P<path>.+)/$", redirect_without_trailing_slash),
]

handler400 = handler403 = "config.api.exceptions.answer_to"
handler404 = "config.api.exceptions.page_not_found"
handler500 = "config.api.exceptions.server_error"
