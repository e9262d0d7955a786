"""The admin site: Django's, with a dashboard on its first page."""

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.actions import delete_selected
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse

from config.admin import dashboard
from config.admin.base import confirmed_action


class AdminSite(admin.AdminSite):
    """Django's AdminSite, in which the form to change one's own password can also be replaced, like `login_form`.

    Attributes:
        password_change_form: the form of one's own password, which the app of the user model sets.
    """

    site_title = site_header = "Users Resource Service"
    index_title = "Overview"
    password_change_form: type[PasswordChangeForm]

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        delete = confirmed_action("Delete selected %(verbose_name_plural)s", permission="delete")
        self.add_action(delete(delete_selected), "delete_selected")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """The apps in the order of INSTALLED_APPS, that of the user model first, instead of by name."""
        labels = [config.label for config in apps.get_app_configs()]
        start = labels.index(get_user_model()._meta.app_label)
        found: list[Any] = super().get_app_list(request, app_label)
        return sorted(found, key=lambda app: (labels.index(app["app_label"]) - start) % len(labels))

    def index(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> TemplateResponse:
        return super().index(request, {**dashboard.build_context(), **(extra_context or {})})

    def password_change(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> TemplateResponse:
        request.current_app = self.name
        view = PasswordChangeView.as_view(
            form_class=self.password_change_form,
            success_url=reverse("admin:password_change_done", current_app=self.name),
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        return view(request)  # type: ignore[return-value]  # or the redirect after the change
