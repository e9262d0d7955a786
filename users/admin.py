from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, ClassVar, cast

from django import forms
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
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html, format_html_join
from django.views.decorators.debug import sensitive_post_parameters

from config.admin import dashboard
from config.admin.dashboard import Chart
from config.api.limits.login_attempts import guess
from config.http.errors import not_found
from config.http.middleware import present_request
from config.models.resource import AuditEvent
from users import services
from users.admin_import import COLUMNS, Imported
from users.models import EMAIL_TAKEN, Status, User, UserQuerySet

TOLD = ("created_at", "updated_at", "what_is_the_users", "recent_events")
RECENT = 20


class UniqueEmail(forms.ModelForm):
    def clean_email(self) -> str:
        """Told beside the field; should another user take the email just then, the service refuses."""
        email: str = self.cleaned_data["email"]
        if User.objects.with_email(email).exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(EMAIL_TAKEN)
        return email


class CreationForm(UniqueEmail, AdminUserCreationForm):
    class Meta:
        model = User
        fields = COLUMNS
        field_classes: ClassVar[dict[str, type]] = {}


class ChangeForm(UniqueEmail, UserChangeForm):
    class Meta:
        model = User
        fields = (*COLUMNS, "password")
        field_classes: ClassVar[dict[str, type]] = {}


def _locked(user: User) -> User:
    """The row as it is now, which the form's copy may not be any more."""
    present = User.objects.select_for_update().filter(pk=user.pk).first()
    if present is None:
        raise not_found()
    return present


def _change_password(user: User, password: str | None) -> User:
    with transaction.atomic():
        present = services.change(_locked(user), {"password": password})
    user.password = present.password
    return user


class PasswordForm(AdminPasswordChangeForm):
    """For the password of any user."""

    def save(self, commit: bool = True) -> User:
        usable = self.cleaned_data["set_usable_password"]
        return _change_password(self.user, self.cleaned_data["password1"] if usable else None)


class OwnPasswordForm(PasswordChangeForm):
    """For one's own password, which asks for the present one under the limits on guessing."""

    required_css_class = "required"

    def clean_old_password(self) -> str:
        request = present_request.get()
        with guess(request, self.user.email, user=self.user, door="current_password") as right:
            right.append(check_password(self.cleaned_data["old_password"], self.user.password))
            if not any(right):
                raise forms.ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return str(self.cleaned_data["old_password"])

    def save(self, commit: bool = True) -> User:
        return _change_password(self.user, self.cleaned_data["new_password1"])


@admin.register(User)
class UserAdmin(Imported, DjangoUserAdmin):
    form = ChangeForm
    add_form = CreationForm
    change_password_form = PasswordForm
    list_display = ("id", *COLUMNS, "created_at")
    list_filter = ("role", "status", "created_at")
    sortable_by = ("id", "name", "email", "created_at")
    search_fields = ("id", "name__startswith")
    search_help_text = "An id, or the beginning of a name (in its own case) or of an email (in any case)"
    ordering = ("id",)
    filter_horizontal = ()
    actions: Sequence[str] = ("deactivate", "activate")
    export_fields = ("id", *COLUMNS, "created_at", "updated_at")
    readonly_fields = TOLD
    fieldsets = ((None, {"fields": (*COLUMNS, "password", *TOLD)}),)
    add_fieldsets = ((None, {"fields": (*COLUMNS, "usable_password", "password1", "password2")}),)

    def get_matches(self, queryset: QuerySet[Model], search_term: str) -> list[QuerySet[Model]]:
        by_email = cast(UserQuerySet, queryset).with_email_beginning(search_term)
        return [*super().get_matches(queryset, search_term), by_email]

    @method_decorator(sensitive_post_parameters())
    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        # Django's, without its transaction around that in which a form runs again after a deadlock.
        return self._add_view(request, form_url, extra_context)  # type: ignore[attr-defined]  # not in the stubs

    def save_model(self, request: HttpRequest, obj: User, form: forms.ModelForm, change: bool) -> None:
        if not change:
            password = form.cleaned_data["password1"] if obj.has_usable_password() else None
            obj.pk = services.create(**{name: form.cleaned_data[name] for name in COLUMNS}, password=password).pk
            return
        changes = {name: form.cleaned_data[name] for name in form.changed_data if name in COLUMNS}
        services.change(_locked(obj), changes)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset.order_by("id").select_for_update():
            services.remove(user)

    @admin.action(description="Deactivate", permissions=["change"])
    def deactivate(self, request: HttpRequest, queryset: QuerySet[User]) -> HttpResponse | None:
        consequences = ["No password, key, token or session of theirs is accepted until they are activated again."]
        if page := self.confirm_action(request, queryset, "deactivate", "Deactivate users", consequences):
            return page
        self._set_status(request, queryset, Status.INACTIVE, "Deactivated")
        return None

    @admin.action(description="Activate", permissions=["change"])
    def activate(self, request: HttpRequest, queryset: QuerySet[User]) -> HttpResponse | None:
        consequences = ["What they had is accepted again, as far as it has not ended meanwhile."]
        if page := self.confirm_action(request, queryset, "activate", "Activate users", consequences):
            return page
        self._set_status(request, queryset, Status.ACTIVE, "Activated")
        return None

    def _set_status(self, request: HttpRequest, rows: QuerySet[User], status: Status, done: str) -> None:
        users = list(rows.exclude(status=status).order_by("id").select_for_update())
        for user in users:
            services.change(user, {"status": status})
            self.log_change(request, user, f"{done}.")
        self.message_user(request, f"{done} {len(users)} users.", messages.SUCCESS)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Support, which changes nothing here, is not shown what Django tells of a password's hash."""
        if obj is None or request.user.is_superuser:
            return super().get_fieldsets(request, obj)
        return ((None, {"fields": (*COLUMNS, *TOLD)}),)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002
        """One's own password is changed where the present one is asked for."""
        if self.get_object(request, unquote(id)) == request.user:
            return HttpResponseRedirect(reverse("admin:password_change"))
        return super().user_change_password(request, id, form_url)

    @admin.display(description="what is the user's")
    def what_is_the_users(self, obj: User) -> str:
        """The ways to the lists of what belongs to the user."""
        lists = (
            (reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"), lookup, obj.pk, name)
            for model, page in self.admin_site._registry.items()
            for lookup in getattr(page, "linked_filters", ())
            if lookup in {"user__id", "owner__id"} and (name := model._meta.verbose_name_plural)
        )
        return format_html("<ul>{}</ul>", format_html_join("", '<li><a href="{}?{}__exact={}">{}</a></li>', lists))

    def recent_events(self, obj: User) -> str:
        """The latest of what the audit trail tells of the user, and the way to the rest."""
        events = AuditEvent.objects.filter(user=obj)[:RECENT]
        told = ((f"{event.at:%Y-%m-%d %H:%M:%S}", event.event, event.address or "") for event in events)
        rows = format_html_join("", "<li>{} {} {}</li>", told)
        every = f"{reverse('admin:config_auditevent_changelist')}?user__id__exact={obj.pk}"
        return format_html('<ul>{}</ul><a href="{}">All events</a>', rows, every)


@dashboard.register_charts
def build_sign_up_chart(days: Sequence[date]) -> Iterator[Chart]:
    values = dashboard.aggregate_by_day(User.objects.all(), "created_at", days, users=Count("pk"))
    yield Chart("Sign-ups", "Users, by the day on which they were added.", days, dashboard.to_integers(values))


admin.site.password_change_form = OwnPasswordForm
admin.site.unregister(Group)
