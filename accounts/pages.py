"""HTML pages for people: their common base, sign-in and sign-out, mailed links, and what is one's own."""

from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import views
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from accounts import passwords
from accounts.models import Application, living_refresh_tokens, takes_loopback_redirects
from accounts.sessions import end_session, fetch_sessions, get_public_id
from config.api.exceptions import plain_response
from config.api.limits import quotas
from config.http.errors import DomainError, ErrorCode
from config.http.request_limits import MAX_SHORT_BODY
from config.postgresql.transactions import run_in_transaction
from users import messages, services
from users.links import SETS_PASSWORD, Purpose, find_user
from users.models import User

MAX_EMAIL_LENGTH = 254
# The Cross-Origin-Opener-Policy that does not cut a popup off from the page of an application that opened it.
IN_POPUP = "unsafe-none"


def build_content_policy(*, leads_to_application: bool = False) -> str:
    """A Content-Security-Policy: nothing inline, nothing from other origins, not in a frame.

    Args:
        leads_to_application: whether the response to a form may redirect to the redirect_uri of an application.

    Returns:
        The value of the header.
    """
    targets = "'self'"
    if leads_to_application:
        # Chromium applies form-action to every redirect after a form, also to those from the redirect_uri to elsewhere.
        targets += " https: http:" if takes_loopback_redirects() else " https:"
    # No script runs here that could connect; a crawler that reads robots.txt by the page's own policy may.
    sources = "default-src 'none'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'"
    return f"{sources}; form-action {targets}; frame-ancestors 'none'"


@method_decorator(csrf_exempt, name="dispatch")
class Page(View):
    """A view that responds with HTML. Its methods are CSRF-protected; another method is a 405 before that check."""

    http_method_names = ["get", "head", "post", "options"]
    max_body = MAX_SHORT_BODY
    opener_policy = "same-origin"

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        method = (request.method or "").lower()
        is_allowed = method in self.http_method_names and hasattr(self, method)
        handler = csrf_protect(self.respond) if is_allowed else self.http_method_not_allowed
        try:
            quotas.consume_quota(request, request.user if request.user.is_authenticated else None)
            response = handler(request, *args, **kwargs)
        except DomainError as error:
            title = "Try again later" if error.code is ErrorCode.RATE_LIMITED else "Something went wrong"
            response = render_notice(request, title, error.message, error.status)
            for name, value in error.headers.items():
                response[name] = value
        response.setdefault("Content-Security-Policy", build_content_policy())
        response["Cross-Origin-Opener-Policy"] = self.opener_policy
        response["Cache-Control"] = "no-store"
        return response

    def respond(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        return super().dispatch(request, *args, **kwargs)

    def http_method_not_allowed(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        allowed = self.options(request).headers["Allow"]
        message = "This page does not support the method. See the Allow header."
        return plain_response(DomainError(ErrorCode.METHOD_NOT_ALLOWED, message, headers={"Allow": allowed}), request)


def render_notice(request: HttpRequest, title: str, text: str, status: int) -> HttpResponse:
    """A page that says one thing.

    Args:
        request: the request that it responds to.
        title: its heading.
        text: one paragraph, plain text.
        status: the status of the response.

    Returns:
        The response.
    """
    return render(request, "accounts/notice.html", {"title": title, "text": text}, status=status)


class LoginForm(AuthenticationForm):
    """Email and password. Whatever is wrong with them, the error is the same."""

    error_messages = {"invalid_login": "Wrong email or password."}


class LoginView(Page, views.LoginView):
    """Signs in any active user, and redirects to `next`, which Django accepts only on this host.

    Somebody who is signed in is redirected at once.
    """

    template_name = "accounts/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True
    opener_policy = IN_POPUP
    extra_context = {"sends_mail": lambda: settings.SENDS_MAIL}

    def respond(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        response = super().respond(request, *args, **kwargs)
        if urlsplit(self.get_redirect_url()).path == reverse("oauth-authorize"):
            response["Content-Security-Policy"] = build_content_policy(leads_to_application=True)
        return response

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        """No address of this page, from which it would redirect to itself."""
        target: str = super().get_redirect_url()
        return "" if urlsplit(target).path == self.request.path else target


class PasswordResetRequestView(Page):
    """Asks for the email of an account whose password is forgotten. Whether there is one, nobody learns."""

    def respond(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if not settings.SENDS_MAIL:
            raise Http404
        return super().respond(request, *args, **kwargs)

    def get(self, request: HttpRequest) -> HttpResponse:
        return render(request, "accounts/reset_request.html")

    def post(self, request: HttpRequest) -> HttpResponse:
        messages.ask_for_password_reset(request, request.POST.get("email", "")[:MAX_EMAIL_LENGTH])
        text = "If an account has this email address, you will receive a link to set a new password within 30 minutes."
        return render_notice(request, "Check your email", text, 200)


class LinkPage(Page):
    """The page of a mailed link. Opening it does not use the link: mail scanners open links, too.

    Attributes:
        purposes: of the links.
        template_name: of the form by which the link is used.
    """

    purposes: Sequence[Purpose]
    template_name: str

    def respond(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        try:
            return super().respond(request, *args, **kwargs)
        except DomainError as error:
            if error.code is not ErrorCode.NOT_FOUND:
                raise
            # What it would be for, if it were good: what to do next depends on it.
            context = {"purpose": str(kwargs["token"]).partition("-")[0], "sends_mail": settings.SENDS_MAIL}
            return render(request, "accounts/expired.html", context, status=error.status)

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        find_user(token, *self.purposes)
        return render(request, self.template_name)


class PasswordResetView(LinkPage):
    purposes = SETS_PASSWORD
    template_name = "accounts/reset.html"

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        try:
            messages.set_password(token, request.POST.get("password", ""))
        except ValidationError as error:
            return render(request, self.template_name, {"errors": error.messages}, status=400)
        return render(request, "accounts/done.html", {"title": "Your password is set"})


class EmailVerificationView(LinkPage):
    purposes = (Purpose.EMAIL_VERIFICATION,)
    template_name = "accounts/verify.html"

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        messages.verify_email(token)
        return render(request, "accounts/done.html", {"title": "Your email is verified"})


class LogoutView(Page, views.LogoutView):  # type: ignore[misc]  # the stubs know one type of response only
    http_method_names = ["post", "options"]


class AccountView(Page):
    """The page on which users see what is theirs, end it, and leave."""

    @method_decorator(login_required)
    def get(self, request: HttpRequest, problem: str = "") -> HttpResponse:
        user: Any = request.user
        tokens = living_refresh_tokens(timezone.now())
        context = {
            "sessions": fetch_sessions(user),
            "present": get_public_id(str(request.session.session_key)),
            "keys": user.api_keys.usable(),
            "applications": Application.objects.filter(pk__in=tokens.filter(user=user).values("application")),
            "api": f"/api/v{settings.API_VERSIONS[-1]}",
            "problem": problem,
        }
        return render(request, "accounts/account.html", context, status=400 if problem else 200)

    @method_decorator(login_required)
    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            if "end" in request.POST:
                end_session(request.user, request.POST["end"])
            elif "remove" in request.POST:
                return self._remove(request)
        except DomainError as error:
            if error.code is ErrorCode.RATE_LIMITED:
                raise
            return self.get(request, error.message)
        return redirect("account")

    def _remove(self, request: HttpRequest) -> HttpResponse:
        email = cast(User, request.user).email
        user = passwords.prove(request, email, request.POST.get("password", ""), door="current_password")
        run_in_transaction(lambda: services.remove(*User.objects.select_for_update().filter(pk=user.pk)))
        # No log-out: its event would come after those that go with the user.
        request.session.flush()
        return redirect("/")
