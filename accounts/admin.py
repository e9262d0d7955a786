from typing import cast

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from oauth2_provider.models import get_access_token_model, get_grant_model, get_id_token_model, get_refresh_token_model

from accounts import services
from accounts.models import PREFIX_CHARACTERS, APIKey, APIKeyQuerySet, Application, LoginSession
from config.admin.base import ReadOnlyAdmin, ServiceAdmin, confirmed_action, get_principal
from config.api.principal import SCOPE_TEXTS
from config.http.errors import DomainError, ErrorCode
from config.postgresql.visibility import IsVisible
from users.admin import UserAdmin
from users.models import User

# django-oauth-toolkit registers pages on which applications and tokens could be edited without the rules of the API.
admin.site.unregister(
    [Application, get_access_token_model(), get_grant_model(), get_id_token_model(), get_refresh_token_model()]
)


@admin.register(APIKey)
class APIKeyAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_link", "name", "prefix", "expires_at", "last_used_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("id", "user", "prefix__startswith")
    search_help_text = "A key ID, a user ID, or a key: only its prefix is compared."
    exclude = ("digest",)
    actions = ("revoke",)
    export_fields = ("user_id", *APIKey.archived)

    def get_queryset(self, request: HttpRequest) -> QuerySet[APIKey]:
        """Limits the keys as the API does: administrators see the keys of all users, support its own."""
        return cast(APIKeyQuerySet, super().get_queryset(request)).visible_to(get_principal(request))

    def has_view_related_permission(self, request: HttpRequest, row: Model) -> bool:
        # Never says that there are none if only some are visible (get_queryset).
        is_visible = get_principal(request).user.is_administrator or row == request.user
        return is_visible and super().has_view_related_permission(request, row)

    def get_matches(self, queryset: QuerySet[Model], search_term: str) -> list[QuerySet[Model]]:
        # Only the prefix of a key is stored in plain text, so a search for a whole key is cut to it.
        return super().get_matches(queryset, search_term[:PREFIX_CHARACTERS])

    @confirmed_action("Revoke", "The keys stop working with the next request. This cannot be undone.")
    def revoke(self, request: HttpRequest, queryset: QuerySet[APIKey]) -> None:
        # The user's row is locked before the key's, in the order of ids; see APIKeyViewSet.lock_related.
        keys = queryset.filter(revoked_at=None).select_related("user").order_by("user_id", "id")
        revoked = [key for key in keys if User.objects.lock_key_share(key.user_id)]
        for key in revoked:
            services.revoke_api_key(key, by=cast(User, request.user))
            self.log_change(request, key, "Revoked.")
        self.message_user(request, f"Revoked {len(revoked)} keys.", messages.SUCCESS)


@admin.register(LoginSession)
class LoginSessionAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_link", "created_at", "rotated_at", "expires_at", "ended_at")
    search_fields = ("user",)
    search_help_text = "A user ID."
    sortable_by = ("expires_at",)
    ordering = ("-expires_at",)
    exclude = ("password_digest", "refresh_digest", "previous_digest", "access_id")


class TokenAdmin(ReadOnlyAdmin):
    """Shows to which user and application a token was issued, when and with which scopes, and not itself."""

    search_fields = ("id", "user", "application")
    search_help_text = "The ID of a token, a user or an application."
    list_select_related = ("user", "application")
    actions = ("end_grant",)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        # The toolkit's managers know nothing of removed users.
        return super().get_queryset(request).filter(IsVisible(self.model))

    @confirmed_action(
        "Revoke the application's access to the user",
        "All codes and tokens that these applications hold for these users stop working immediately.",
    )
    def end_grant(self, request: HttpRequest, queryset: QuerySet) -> None:
        grants = {(row.user_id, row.application_id): row for row in queryset.select_related("user", "application")}
        for _, row in sorted(grants.items(), key=lambda grant: (grant[0][0] or 0, grant[0][1])):
            services.end_grant(row.user, row.application, by=request.user)
            # Logged for the application, as codes and access tokens are deleted with the grant.
            self.log_change(request, row.application, "Revoked access.")
        self.message_user(request, f"Revoked {len(grants)} grants.", messages.SUCCESS)


@admin.register(get_access_token_model())
class AccessTokenAdmin(TokenAdmin):
    list_display = fields = ("id", "user_link", "application", "scope", "created", "expires")


@admin.register(get_refresh_token_model())
class RefreshTokenAdmin(TokenAdmin):
    list_display = fields = ("id", "user_link", "application", "created", "revoked")


class ApplicationForm(forms.ModelForm):
    allowed_scopes = forms.MultipleChoiceField(
        choices=[(scope, f"{scope}: {text}") for scope, text in SCOPE_TEXTS.items()],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text="The scopes that the application may request. Removing one takes effect with the next request.",
    )

    class Meta:
        model = Application
        fields = ("name", "owner", "client_type", "authorization_grant_type", "redirect_uris", "allowed_scopes")


@admin.register(Application)
class ApplicationAdmin(ServiceAdmin):
    form = ApplicationForm
    list_display = ("id", "name", "client_id", "user_link", "client_type", "authorization_grant_type")
    search_fields = ("id", "name__startswith", "client_id", "owner")
    search_help_text = "The start of a name, a full client ID, or the ID of an application or its owner."
    raw_id_fields = ("owner",)
    list_select_related = ("owner",)
    user_field = "owner"
    actions = ("rotate_secret",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_administrator_permission(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Application | None = None) -> tuple[str, ...]:
        # Type and grant never change: tokens that were issued for one would mean something else under the other.
        return ("client_id", "client_type", "authorization_grant_type") if obj else ()

    def save_model(self, request: HttpRequest, obj: Application, form: forms.ModelForm, change: bool) -> None:
        if change and form.changed_data:
            services.change_application(obj, form.changed_data)
        elif not change:
            request.new_secret = services.save_new_application(obj)  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: Application, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._show_secret(request, f"{obj} was added", obj, request.new_secret)  # type: ignore[attr-defined]

    @confirmed_action(
        "Replace the client secret",
        "The current secret stops working immediately.",
        "Its tokens stay valid until they expire.",
    )
    def rotate_secret(self, request: HttpRequest, queryset: QuerySet[Application]) -> HttpResponse:
        if len(queryset) != 1 or queryset[0].client_type != Application.CLIENT_CONFIDENTIAL:
            message = "Select one confidential application. Public applications have no secret."
            raise DomainError(ErrorCode.CONFLICT, message)
        application = queryset[0]
        secret = services.rotate_secret(application)
        self.log_change(request, application, "Replaced the client secret.")
        return self._show_secret(request, f"{application} has a new secret", application, secret)

    def _show_secret(
        self, request: HttpRequest, title: str, application: Application, secret: str | None
    ) -> HttpResponse:
        """Shows the secret once, on a page: a message would keep it in a cookie until the next page.

        Args:
            request: the request of the administrator.
            title: the title of the page.
            application: the application the secret belongs to.
            secret: the secret in clear, None for a public client.
        """
        context = {**self.admin_site.each_context(request), "title": title, "application": application}
        return render(request, "admin/accounts/application/secret.html", context | {"secret": secret})

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Application]) -> None:
        for application in queryset.order_by("id"):
            services.remove_application(application)


admin.site.unregister(User)


@admin.register(User)
class UserWithCredentialsAdmin(UserAdmin):
    """Adds to the admin of users the actions on credentials, which the app `users` does not know."""

    actions = (*UserAdmin.actions, "end_credentials")

    @confirmed_action(
        "Revoke all credentials",
        "All API keys, sign-ins, sessions and OAuth tokens stop working immediately. If you are one of these users, "
        "your own session ends, too.",
        "So do the secrets of client-credentials applications that act for these users. Replace them afterwards.",
        *(["Their webhooks are disabled, and tell why."] if settings.EVENTS else []),
        "Passwords stay valid. To lock a user out, also change the password or set the status to inactive.",
    )
    def end_credentials(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        users = list(queryset.order_by("id"))
        for user in users:
            services.end_credentials(user)
            self.log_change(request, user, "Revoked all credentials.")
        self.message_user(request, f"Revoked all credentials of {len(users)} users.", messages.SUCCESS)
