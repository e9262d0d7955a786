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
from django.utils.html import format_html, format_html_join

from config.admin import ServiceAdmin
from config.api.guessing import guess
from config.api.middleware import present_request
from config.models import AuditEvent
from users import services
from users.models import User

COLUMNS = ("name", "email", "role", "status")
RECENT = 20


class CreationForm(AdminUserCreationForm):
    class Meta:
        model = User
        fields = COLUMNS
        field_classes: ClassVar[dict[str, type]] = {}


class ChangeForm(UserChangeForm):
    class Meta:
        model = User
        fields = (*COLUMNS, "password")
        field_classes: ClassVar[dict[str, type]] = {}


def _change_password(user: User, password: str | None) -> User:
    with transaction.atomic():
        present = services.change(User.objects.select_for_update().get(pk=user.pk), {"password": password})
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

    def save_model(self, request: HttpRequest, obj: User, form: forms.ModelForm, change: bool) -> None:
        if not change:
            super().save_model(request, obj, form, change)
            return
        present = User.objects.select_for_update().get(pk=obj.pk)
        services.change(present, {name: form.cleaned_data[name] for name in form.changed_data if name in COLUMNS})

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002
        """One's own password is changed on the page that asks for the present one."""
        if self.get_object(request, unquote(id)) == request.user:
            return HttpResponseRedirect(reverse("admin:password_change"))
        return super().user_change_password(request, id, form_url)

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        services.remove(User.objects.select_for_update().get(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        with transaction.atomic():
            for user in queryset.order_by("id").select_for_update():
                services.remove(user)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Removal keeps what the books need, so nothing that refers to a user stands in its way."""
        return [str(user) for user in objs], {"users": len(objs)}, set(), []

    def recent_events(self, obj: User) -> str:
        """The latest of what the audit trail tells of the user, and the way to the rest."""
        events = AuditEvent.objects.filter(user=obj)[:RECENT]
        told = ((f"{event.at:%Y-%m-%d %H:%M:%S}", event.event, event.address or "") for event in events)
        rows = format_html_join("", "<li>{} {} {}</li>", told)
        every = f"{reverse('admin:config_auditevent_changelist')}?user__id__exact={obj.pk}"
        return format_html('<ul>{}</ul><a href="{}">All events</a>', rows, every)


admin.site.password_change_form = OwnPasswordForm
admin.site.unregister(Group)
