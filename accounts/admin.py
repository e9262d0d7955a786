from typing import ClassVar

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from oauth2_provider.models import get_access_token_model, get_grant_model, get_id_token_model, get_refresh_token_model

from accounts import services
from accounts.models import APIKey, Application, LoginSession
from config import audit
from config.admin import ReadOnlyAdmin, ServiceAdmin
from config.api.principal import SCOPE_TEXTS


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

    def get_readonly_fields(self, request: HttpRequest, obj: Application | None = None) -> tuple[str, ...]:
        # The kind stays: a token that was given for one would mean something else under the other.
        return ("client_id", "client_type", "authorization_grant_type") if obj else ()

    def save_model(self, request: HttpRequest, obj: Application, form: forms.ModelForm, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            facts = {"client_id": obj.client_id, "changed": form.changed_data}
            audit.record("oauth_application.changed", user=obj.owner, **facts)
        else:
            request.new_secret = services.save_new_application(obj)  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: Application, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Shows the secret, this once: not in a message, which would keep it in a cookie until the next page."""
        context = {**self.admin_site.each_context(request), "application": obj, "secret": request.new_secret}  # type: ignore[attr-defined]
        return render(request, "admin/accounts/application/added.html", context)

    def delete_model(self, request: HttpRequest, obj: Application) -> None:
        services.remove_application(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Application]) -> None:
        with transaction.atomic():
            for application in queryset.order_by("id"):
                services.remove_application(application)
