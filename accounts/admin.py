from typing import ClassVar, cast

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from oauth2_provider.models import get_access_token_model, get_grant_model, get_id_token_model, get_refresh_token_model

from accounts import services
from accounts.models import APIKey, Application, LoginSession
from config.admin import ReadOnlyAdmin, ServiceAdmin
from config.api.principal import SCOPE_TEXTS
from users.admin import UserAdmin
from users.models import User


@admin.register(APIKey)
class APIKeyAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_id", "name", "prefix", "expires_at", "last_used_at", "revoked_at")
    search_fields = ("prefix", "=user__id")
    exclude = ("digest",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[APIKey]:
        """An administrator sees everybody's, support its own: as in the API."""
        rows = super().get_queryset(request)
        return rows if request.user.is_superuser else rows.filter(user_id=request.user.pk)


@admin.register(LoginSession)
class LoginSessionAdmin(ReadOnlyAdmin):
    list_display = ("id", "user_id", "created_at", "rotated_at", "expires_at", "ended_at")
    search_fields = ("=user__id",)
    exclude = ("password_digest", "refresh_digest", "previous_digest", "access_id")


class ApplicationForm(forms.ModelForm):
    allowed_scopes = forms.MultipleChoiceField(
        choices=[(scope, f"{scope}: {text}") for scope, text in SCOPE_TEXTS.items()],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text="What it may ask users for at most. What is taken away counts from the next request on.",
    )

    class Meta:
        model = Application
        fields = ("name", "owner", "client_type", "authorization_grant_type", "redirect_uris", "allowed_scopes")
        field_classes: ClassVar[dict[str, type]] = {}


# What the toolkit registers: an admin of applications that is not ours, and rows that nobody should edit.
for model in (
    Application,
    get_access_token_model(),
    get_grant_model(),
    get_id_token_model(),
    get_refresh_token_model(),
):
    admin.site.unregister(model)


@admin.register(Application)
class ApplicationAdmin(ServiceAdmin):
    form = ApplicationForm
    list_display = ("id", "name", "client_id", "owner", "client_type", "authorization_grant_type")
    list_select_related = ("owner",)
    search_fields = ("name", "=client_id")
    raw_id_fields = ("owner",)
    actions = ("rotate_secret",)

    def get_readonly_fields(self, request: HttpRequest, obj: Application | None = None) -> tuple[str, ...]:
        # The kind stays: a token that was given for one would mean something else under the other.
        return ("client_id", "client_type", "authorization_grant_type") if obj else ()

    def save_model(self, request: HttpRequest, obj: Application, form: forms.ModelForm, change: bool) -> None:
        if change:
            services.change_application(obj, form.changed_data)
        else:
            request.new_secret = services.save_new_application(obj)  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: Application, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._show_secret(request, f"{obj} was added", obj, request.new_secret)  # type: ignore[attr-defined]

    @admin.action(description="Make a new secret and end the present one", permissions=["change"])
    def rotate_secret(self, request: HttpRequest, queryset: QuerySet[Application]) -> HttpResponse | None:
        confidential = queryset.filter(client_type=Application.CLIENT_CONFIDENTIAL)
        if queryset.count() != 1 or not confidential:
            self.message_user(
                request, "Choose one confidential application; a public one has no secret.", messages.ERROR
            )
            return None
        consequences = ["The present secret is refused from now on.", "The tokens it got stay good until their end."]
        title = "Make a new secret and end the present one"
        if page := self.confirmation(request, queryset, "rotate_secret", title, consequences):
            return page
        application = confidential.get()
        secret = services.rotate_secret(application)
        self.log_change(request, application, "Made a new secret.")
        return self._show_secret(request, f"{application} has a new secret", application, secret)

    def _show_secret(
        self, request: HttpRequest, title: str, application: Application, secret: str | None
    ) -> HttpResponse:
        """Shows the secret, this once: not in a message, which would keep it in a cookie until the next page."""
        context = {**self.admin_site.each_context(request), "title": title, "application": application}
        return render(request, "admin/accounts/application/secret.html", context | {"secret": secret})

    def delete_model(self, request: HttpRequest, obj: Application) -> None:
        services.remove_application(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Application]) -> None:
        for application in queryset.order_by("id"):
            services.remove_application(application)


admin.site.unregister(User)


@admin.register(User)
class UserWithCredentialsAdmin(UserAdmin):
    """Users, with what is to be done about their credentials, of which `users` knows nothing."""

    actions = ("end_credentials",)

    @admin.action(description="End all keys, tokens and sessions", permissions=["change"])
    def end_credentials(self, request: HttpRequest, queryset: QuerySet[User]) -> HttpResponse | None:
        consequences = [
            "All API keys, logins, sessions and OAuth tokens end now.",
            "So do the secrets of applications that act for the users by client credentials: make new ones for those.",
            "The password stays good. To keep somebody out, change it or set the status to inactive, too.",
        ]
        if queryset.contains(cast(User, request.user)):
            consequences.append("You are among them: your present session ends, too.")
        title = "End all keys, tokens and sessions"
        if page := self.confirmation(request, queryset, "end_credentials", title, consequences):
            return page
        users = list(queryset.order_by("id"))
        for user in users:
            services.end_credentials(user)
            self.log_change(request, user, "Ended all keys, tokens and sessions.")
        self.message_user(request, f"Ended all keys, tokens and sessions of {len(users)} users.", messages.SUCCESS)
        return None
