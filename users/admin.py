from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from config.admin import ServiceAdmin
from users import services
from users.models import User

COLUMNS = ("name", "email", "role", "status")


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
            super().save_model(request, obj, form, change)
            return
        present = User.objects.select_for_update().get(pk=obj.pk)
        services.change(present, {name: form.cleaned_data[name] for name in form.changed_data if name in COLUMNS})

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


admin.site.unregister(Group)
