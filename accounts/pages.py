"""Pages for people in a browser: what they have in common, sign-in and sign-out."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate, views
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from config.api.exceptions import plain_response
from config.api.limits import quotas
from config.http.errors import DomainError, ErrorCode


def policy(*form_targets: str) -> str:
    """A Content-Security-Policy: nothing inline, nothing from elsewhere, in no frame.

    Args:
        form_targets: the origins, beside our own, to which the answer to a form may redirect.
    """
    targets = " ".join(["'self'", *form_targets])
    sources = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'"
    return f"{sources}; form-action {targets}; frame-ancestors 'none'"


@method_decorator(csrf_exempt, name="dispatch")
class Page(View):
    """A view that answers HTML. Its methods are CSRF-protected; one that it does not have is 405 before that."""

    http_method_names = ["get", "head", "post", "options"]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        known = request.method in self._allowed_methods()  # type: ignore[attr-defined]  # the stubs leave it out
        answer = csrf_protect(self.respond) if known else self.http_method_not_allowed
        try:
            quotas.charge(request, request.user if request.user.is_authenticated else None)
            response = answer(request, *args, **kwargs)
        except DomainError as error:
            response = notice(request, "Try again later", error.message, error.status)
            for name, value in error.headers.items():
                response[name] = value
        response.setdefault("Content-Security-Policy", policy())
        response["Cache-Control"] = "no-store"
        return response

    def respond(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return super().dispatch(request, *args, **kwargs)

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        allowed = ", ".join(self._allowed_methods())  # type: ignore[attr-defined]  # the stubs leave it out
        message = "This page does not have that method; see Allow."
        return plain_response(DomainError(ErrorCode.METHOD_NOT_ALLOWED, message, headers={"Allow": allowed}), request)


def notice(request: HttpRequest, title: str, text: str, status: int) -> HttpResponse:
    return render(request, "accounts/notice.html", {"title": title, "text": text}, status=status)


class LoginForm(AuthenticationForm):
    """One email, one password, one answer to whatever is wrong with them."""

    error_messages = {"invalid_login": "The email or the password is wrong."}

    def clean(self) -> dict[str, Any]:
        email, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if email is not None and password:
            # Django hashes the password whether or not there is such a user, and whether or not it is active.
            self.user_cache = authenticate(self.request, username=email, password=password)
            if self.user_cache is None:
                raise forms.ValidationError(self.error_messages["invalid_login"], code="invalid_login")
        return self.cleaned_data


class LoginView(Page, views.LoginView):
    """Signs in any active user, and goes on to `next` on this host (Django looks whether it is)."""

    template_name = "accounts/login.html"
    authentication_form = LoginForm


class LogoutView(Page, views.LogoutView):  # type: ignore[misc]  # the stubs know one kind of answer only
    http_method_names = ["post", "options"]
