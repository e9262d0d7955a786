"""What people see of OAuth: who asks for what, and what they have granted."""

from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from oauth2_provider.exceptions import FatalClientError, OAuthToolkitError
from oauth2_provider.oauth2_backends import _add_iss_to_redirect
from oauth2_provider.settings import oauth2_settings
from oauth2_provider.views.mixins import OAuthLibMixin

from accounts import services
from accounts.models import Application
from accounts.pages import Page, notice, policy
from config.api.principal import SCOPE_TEXTS


class AuthorizeView(OAuthLibMixin, Page):
    """The authorization endpoint (RFC 6749, section 3.1).

    The form posts to the very address of the request, which is validated again; the toolkit's view carries the request
    in hidden fields, and believes their redirect_uri when consent is denied.
    """

    def respond(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return super().respond(request, *args, **kwargs)
        except FatalClientError as error:
            # The client or its redirect is not to be trusted: the user is told, and sent nowhere.
            reason = error.oauthlib_error.description or error.oauthlib_error.error
            return notice(request, "This request cannot be granted", reason, 400)
        except OAuthToolkitError as error:
            target = error.oauthlib_error.in_uri(error.oauthlib_error.redirect_uri)
            return HttpResponseRedirect(_add_iss_to_redirect(target, oauth2_settings.OIDC_ISS_ENDPOINT))

    def get(self, request: HttpRequest) -> HttpResponse:
        scopes, credentials = self._asked(request)
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        client = credentials["request"].client
        target = urlsplit(credentials["redirect_uri"])
        context = {"application": client, "texts": [SCOPE_TEXTS[scope] for scope in scopes], "host": target.netloc}
        response = render(request, "accounts/authorize.html", context)
        # Browsers hold the redirect that answers a form to the policy of the form's page.
        response["Content-Security-Policy"] = policy(f"{target.scheme}://{target.netloc}")
        return response

    def post(self, request: HttpRequest) -> HttpResponse:
        scopes, credentials = self._asked(request)
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        allow = request.POST.get("decision") == "approve"
        target, *_ = self.create_authorization_response(request, " ".join(scopes), credentials, allow)
        return HttpResponseRedirect(target)

    def _asked(self, request: HttpRequest) -> tuple[list[str], dict[str, Any]]:
        """The scopes and the rest of a valid request.

        Raises:
            FatalClientError: no such client, or not its redirect.
            OAuthToolkitError: anything else, of which the client is told.
        """
        return self.validate_authorization_request(request)


class GrantsView(Page):
    """The applications one has authorised."""

    @method_decorator(login_required)
    def get(self, request: HttpRequest) -> HttpResponse:
        applications = Application.objects.authorised_by(request.user)
        return render(request, "accounts/grants.html", {"applications": applications})

    @method_decorator(login_required)
    def post(self, request: HttpRequest) -> HttpResponse:
        chosen = Application.objects.filter(client_id=request.POST.get("client_id", "").replace("\0", "")).first()
        if chosen is None:
            raise Http404
        services.end_grant(request.user, chosen)
        return redirect("oauth-grants")
