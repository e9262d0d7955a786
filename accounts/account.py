"""The page on which users see what is theirs, end it, and leave."""

from typing import Any, cast

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.decorators import method_decorator

from accounts import passwords
from accounts.models import Application, living_refresh_tokens
from accounts.pages import Page
from accounts.sessions import end_session, fetch_sessions, get_public_id
from config.http.errors import DomainError, ErrorCode
from config.postgresql.transactions import run_in_transaction
from users import services
from users.models import User


class AccountView(Page):
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
