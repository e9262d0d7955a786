from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from config.admin import ServiceAdmin
from config.api.errors import not_found
from users import services
from users.models import User

COLUMNS = ("name", "email", "role", "status")


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


@admin.register(User)
class UserAdmin(ServiceAdmin, DjangoUserAdmin):
    form = ChangeForm
    add_form = CreationForm
    list_display = ("id", *COLUMNS, "created_at")
    list_filter = ("role", "status")
    search_fields = ("=id", "name__startswith", "email__startswith")
    ordering = ("id",)
    filter_horizontal = ()
    readonly_fields = ("created_at", "updated_at")
    fieldsets = ((None, {"fields": (*COLUMNS, "password", "created_at", "updated_at")}),)
    add_fieldsets = ((None, {"fields": (*COLUMNS, "usable_password", "password1", "password2")}),)

    def save_model(self, request: HttpRequest, obj: User, form: forms.ModelForm, change: bool) -> None:
        if not change:
            password = form.cleaned_data["password1"] if obj.has_usable_password() else None
            obj.pk = services.create(**{name: form.cleaned_data[name] for name in COLUMNS}, password=password).pk
            return
        changes = {name: form.cleaned_data[name] for name in form.changed_data if name in COLUMNS}
        services.change(self._locked(obj), changes)

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        services.remove(self._locked(obj))

    def _locked(self, user: User) -> User:
        present = User.objects.select_for_update().filter(pk=user.pk).first()
        if present is None:
            raise not_found()
        return present

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset.order_by("id").select_for_update():
            services.remove(user)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Support, which changes nothing here, is not shown what Django tells of a password's hash."""
        if obj is None or request.user.is_superuser:
            return super().get_fieldsets(request, obj)
        return ((None, {"fields": (*COLUMNS, "created_at", "updated_at")}),)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002
        """One's own password is changed where the present one is asked for."""
        if id == str(request.user.pk):
            return HttpResponseRedirect(reverse("admin:password_change"))
        return super().user_change_password(request, id, form_url)


admin.site.unregister(Group)
