from collections.abc import Sequence
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import (
    AdminPasswordChangeForm,
    AdminUserCreationForm,
    PasswordChangeForm,
    UserChangeForm,
)
from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Count, Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters

from config.admin import changelist, dashboard
from config.admin.base import confirmed_action
from config.admin.related import fetch_related_lists
from config.api.limits.login_attempts import login_attempt
from config.http.request_state import RequestState, present_state
from users import services
from users.admin_import import COLUMNS, UserImportMixin
from users.messages import invite, may_invite
from users.models import UNIQUE, Status, User, UserQuerySet

READONLY_FIELDS = ("email_verified_at", "created_at", "updated_at")
# Django's sentence speaks of single sign-on, which there is none of.
NO_PASSWORD = "If disabled, the user has no password and can sign in only after an administrator sets one."


class EmailMixin(forms.ModelForm):
    def clean_email(self) -> str:
        """Reports a taken email beside its field. The service refuses one that is taken after this check."""
        email: str = self.cleaned_data["email"]
        if User.objects.with_email(email).exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(f"Another user has this {UNIQUE['email']}.")
        return email


class CreationForm(EmailMixin, AdminUserCreationForm):
    usable_password = AdminUserCreationForm.create_usable_password_field(NO_PASSWORD)

    class Meta:
        model = User
        fields = COLUMNS


class ChangeForm(EmailMixin, UserChangeForm):
    class Meta:
        model = User
        fields = (*COLUMNS, "password")


def _lock_user(user: User) -> User:
    """Locks the row and returns it as it is now, as the form's instance may be outdated."""
    return get_object_or_404(User.objects.select_for_update(), pk=user.pk)


def _change_password(user: User, password: str | None) -> User:
    with transaction.atomic():
        current = services.change(_lock_user(user), {"password": password})
    user.password = current.password
    return user


class PasswordForm(AdminPasswordChangeForm):
    """Sets the password of any user."""

    usable_password_help_text = NO_PASSWORD

    def save(self, commit: bool = True) -> User:
        is_usable = self.cleaned_data["set_usable_password"]
        return _change_password(self.user, self.cleaned_data["password1"] if is_usable else None)


class OwnPasswordForm(PasswordChangeForm):
    """Changes one's own password. Checking the current one counts against the limits on login attempts."""

    required_css_class = "required"

    def clean_old_password(self) -> str:
        request = (present_state.get() or RequestState()).request
        password: str = self.cleaned_data["old_password"]
        (account,) = User.objects.all().fold_emails(self.user.email)
        with login_attempt(request, account, user=self.user, door="current_password") as right:
            right.append(check_password(password, self.user.password))
            if not any(right):
                raise forms.ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return password

    def save(self, commit: bool = True) -> User:
        return _change_password(self.user, self.cleaned_data["new_password1"])


@admin.register(User)
class UserAdmin(UserImportMixin, DjangoUserAdmin):
    form = ChangeForm
    add_form = CreationForm
    change_password_form = PasswordForm
    list_display = ("id", *COLUMNS, "created_at")
    list_filter = ("role", "status", "created_at")
    list_select_related = False
    user_field = ""
    sortable_by = ("id", "name", "email", "created_at")
    search_fields = ("id",)
    search_help_text = "A user ID, words from the name or email, or the start of an email address including the @."
    filter_horizontal = ()
    actions: Sequence[str] = ("deactivate", "activate", "invite")
    removal_consequences = (
        "Name, email and password are erased permanently. The email address can be used again immediately.",
        "All API keys, tokens and sessions stop working with the next request.",
        "Orders and payments are kept for accounting, identified only by user ID.",
    )
    export_fields = ("id", *COLUMNS, *READONLY_FIELDS)
    readonly_fields = READONLY_FIELDS
    fieldsets = ((None, {"fields": (*COLUMNS, "password", *READONLY_FIELDS)}),)
    add_fieldsets = ((None, {"fields": (*COLUMNS, "usable_password", "password1", "password2")}),)

    def get_matches(self, queryset: QuerySet[Model], search_term: str) -> list[QuerySet[Model]]:
        if "@" in search_term:
            return [cast(UserQuerySet, queryset).with_email_beginning(search_term)]
        return [*super().get_matches(queryset, search_term), changelist.filter_words(queryset, search_term)]

    @method_decorator(sensitive_post_parameters())
    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # Django's add_view is _add_view in a transaction, inside which changeform_view could not run again after a
        # deadlock.
        return self._add_view(request, *args, **kwargs)  # type: ignore[attr-defined]  # not in the stubs

    def save_model(self, request: HttpRequest, obj: User, form: forms.ModelForm, change: bool) -> None:
        if not change:
            password = form.cleaned_data["password1"] if obj.has_usable_password() else None
            obj.pk = services.create(**{name: form.cleaned_data[name] for name in COLUMNS}, password=password).pk
            return
        changes = {name: form.cleaned_data[name] for name in form.changed_data if name in COLUMNS}
        services.change(_lock_user(obj), changes)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_administrator_permission(request)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        services.remove(*queryset.order_by("id").select_for_update())

    @confirmed_action(
        "Deactivate", "They cannot sign in, and their keys and tokens do not work, until you activate them again."
    )
    def deactivate(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._set_status(request, queryset, Status.INACTIVE, "Deactivated")

    @confirmed_action(
        "Activate",
        "Their passwords, keys, tokens and sessions work again, except those that have expired or been revoked.",
    )
    def activate(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._set_status(request, queryset, Status.ACTIVE, "Activated")

    def has_invite_permission(self, request: HttpRequest) -> bool:
        return settings.SENDS_MAIL and self.has_administrator_permission(request)

    @confirmed_action(
        "Invite",
        "Active users without a password receive an email with a link to set one. It expires after seven days.",
        permission="invite",
    )
    def invite(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        users = [user for user in queryset.order_by("id") if may_invite(user)]
        for user in users:
            invite(user)
            self.log_change(request, user, "Invited.")
        left_out = len(queryset) - len(users)
        skipped = f" Skipped {left_out} who have a password or are inactive." if left_out else ""
        self.message_user(request, f"Invited {len(users)} users.{skipped}", messages.SUCCESS)

    def _set_status(self, request: HttpRequest, queryset: QuerySet[User], status: Status, done: str) -> None:
        users = list(queryset.exclude(status=status).order_by("id").select_for_update())
        for user in users:
            services.change(user, {"status": status})
            self.log_change(request, user, f"{done}.")
        self.message_user(request, f"{done} {len(users)} users.", messages.SUCCESS)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Hides Django's summary of the password hash from support, which may change no user."""
        if obj is None or request.user.is_superuser:
            return super().get_fieldsets(request, obj)
        return ((None, {"fields": (*COLUMNS, *READONLY_FIELDS)}),)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if user := kwargs.get("obj"):
            context["related"] = fetch_related_lists(self.admin_site, request, user)
        return super().render_change_form(request, context, *args, **kwargs)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002
        """Redirects to the form of one's own password, which asks for the current one."""
        if self.get_object(request, unquote(id)) == request.user:
            return HttpResponseRedirect(reverse("admin:password_change"))
        return super().user_change_password(request, id, form_url)


dashboard.register_chart("Sign-ups", "New users per day.", User.objects.all(), "created_at", users=Count("pk"))
admin.site.password_change_form = OwnPasswordForm
admin.site.unregister(Group)
