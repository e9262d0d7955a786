from typing import Any

from django.contrib import admin
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse


class AdminSite(admin.AdminSite):
    """Django's admin, whose page for changing one's own password takes a form like the sign-in does."""

    password_change_form: type[PasswordChangeForm]

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        request.current_app = self.name
        view = PasswordChangeView.as_view(
            form_class=self.password_change_form,
            success_url=reverse("admin:password_change_done", current_app=self.name),
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        return view(request)  # type: ignore[return-value]  # or the redirect after the change
