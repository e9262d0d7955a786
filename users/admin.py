from typing import Any, ClassVar

from django import forms
from django.contrib import admin
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
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html, format_html_join
from django.views.decorators.debug import sensitive_post_parameters

from config.admin import ServiceAdmin
from config.api.errors import not_found
from config.api.guessing import guess
from config.api.middleware import present_request
from config.models import AuditEvent
from users import services
from users.models import User

COLUMNS = ("name", "email", "role", "status")
RECENT = 20


class UniqueEmail(forms.ModelForm):
    def clean_email(self) -> str:
        """Told beside the field; should another user take the email just then, the service refuses."""
        email: str = self.cleaned_data["email"]
        if User.objects.with_email(email).exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError("Another user has this email.")
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
class UserAdmin(ServiceAdmin, DjangoUserAdmin):
    form = ChangeForm
    add_form = CreationForm
    change_password_form = PasswordForm
    list_display = ("id", *COLUMNS, "created_at")
    list_filter = ("role", "status")
    search_fields = ("=id", "name__startswith", "email__startswith")
    ordering = ("id",)
    filter_horizontal = ()
    readonly_fields = ("created_at", "updated_at", "recent_events")
    fieldsets = ((None, {"fields": (*COLUMNS, "password", "created_at", "updated_at", "recent_events")}),)
    add_fieldsets = ((None, {"fields": (*COLUMNS, "usable_password", "password1", "password2")}),)

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

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        services.remove(_locked(obj))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset.order_by("id").select_for_update():
            services.remove(user)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Support, which changes nothing here, is not shown what Django tells of a password's hash."""
        if obj is None or request.user.is_superuser:
            return super().get_fieldsets(request, obj)
        return ((None, {"fields": (*COLUMNS, "created_at", "updated_at", "recent_events")}),)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002
        """One's own password is changed where the present one is asked for."""
        if self.get_object(request, unquote(id)) == request.user:
            return HttpResponseRedirect(reverse("admin:password_change"))
        return super().user_change_password(request, id, form_url)

    def recent_events(self, obj: User) -> str:
        """The latest of what the audit trail tells of the user, and the way to the rest."""
        events = AuditEvent.objects.filter(user=obj)[:RECENT]
        told = ((f"{event.at:%Y-%m-%d %H:%M:%S}", event.event, event.address or "") for event in events)
        rows = format_html_join("", "<li>{} {} {}</li>", told)
        every = f"{reverse('admin:config_auditevent_changelist')}?user__id__exact={obj.pk}"
        return format_html('<ul>{}</ul><a href="{}">All events</a>', rows, every)


admin.site.password_change_form = OwnPasswordForm
admin.site.unregister(Group)
