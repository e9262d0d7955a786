"""The pages of OAuth: consent to an authorization request, and the applications that one has authorised."""

from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.db.models import Min
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.decorators import method_decorator
from oauth2_provider.exceptions import FatalClientError, OAuthToolkitError
from oauth2_provider.models import get_refresh_token_model
from oauth2_provider.oauth2_backends import _add_iss_to_redirect
from oauth2_provider.settings import oauth2_settings
from oauth2_provider.views.mixins import OAuthLibMixin

from accounts import services
from accounts.models import Application, living_refresh_tokens
from accounts.pages import IN_POPUP, Page, build_content_policy, render_notice
from config.api.principal import SCOPE_TEXTS
from config.postgresql.transactions import run_in_transaction


class AuthorizeView(OAuthLibMixin, Page):
    """The authorization endpoint (RFC 6749, section 3.1).

    The form posts to the URL of the request, which is validated again. The toolkit's view carries the request in hidden
    fields, and trusts their redirect_uri when consent is denied.
    """

    opener_policy = IN_POPUP

    def respond(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        try:
            return super().respond(request, *args, **kwargs)
        except FatalClientError as error:
            # The client or its redirect_uri is invalid, so that a redirect is forbidden (RFC 6749, section 4.1.2.1).
            reason = error.oauthlib_error.description or error.oauthlib_error.error
            return render_notice(request, "This request cannot be completed", reason, 400)
        except OAuthToolkitError as error:
            target = error.oauthlib_error.in_uri(error.oauthlib_error.redirect_uri)
            return HttpResponseRedirect(_add_iss_to_redirect(target, oauth2_settings.OIDC_ISS_ENDPOINT))

    def get(self, request: HttpRequest) -> HttpResponse:
        scopes, credentials = self._validate_request(request)
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        client = credentials["request"].client
        host = urlsplit(credentials["redirect_uri"]).netloc
        context = {"application": client, "texts": [SCOPE_TEXTS[scope] for scope in scopes], "host": host}
        response = render(request, "accounts/authorize.html", context)
        response["Content-Security-Policy"] = build_content_policy(leads_to_application=True)
        return response

    def post(self, request: HttpRequest) -> HttpResponse:
        scopes, credentials = self._validate_request(request)
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        allow = request.POST.get("decision") == "approve"
        target, *_ = self.create_authorization_response(request, " ".join(scopes), credentials, allow)
        return HttpResponseRedirect(target)

    def _validate_request(self, request: HttpRequest) -> tuple[list[str], dict[str, Any]]:
        """The scopes and the credentials of a valid request.

        Raises:
            FatalClientError: the client is unknown, or the redirect_uri is not one of its own.
            OAuthToolkitError: any other error, which the client learns by a redirect.
        """
        scopes, credentials = self.validate_authorization_request(request)
        # For the validator, to whom oauthlib shows the default of the client in the place of one that was left out.
        credentials["has_redirect_uri"] = not credentials["request"].using_default_redirect_uri
        return scopes, credentials


def _describe_grants(user: Any) -> list[dict[str, Any]]:
    """Each application that holds a refresh token which it could still use: what it may do, and since when."""
    tokens = living_refresh_tokens(timezone.now()).filter(user=user).select_related("application", "access_token")
    # A refresh token is replaced at each use; its family begins with the consent.
    own = get_refresh_token_model().objects.filter(user=user)
    since = dict(own.order_by().values_list("token_family").annotate(Min("created")))
    grants: dict[int, dict[str, Any]] = {}
    for token in tokens.order_by("application__name", "id"):
        grant = grants.setdefault(
            token.application_id, {"application": token.application, "since": since[token.token_family], "scopes": {}}
        )
        granted = token.access_token.scope.split()
        grant["scopes"] |= {scope: text for scope, text in SCOPE_TEXTS.items() if scope in granted}
        grant["since"] = min(grant["since"], since[token.token_family])
    return list(grants.values())


class GrantsView(Page):
    """The applications that the user has authorised."""

    @method_decorator(login_required)
    def get(self, request: HttpRequest) -> HttpResponse:
        return render(request, "accounts/grants.html", {"grants": _describe_grants(request.user)})

    @method_decorator(login_required)
    def post(self, request: HttpRequest) -> HttpResponse:
        client_id = request.POST.get("client_id", "").replace("\0", "")
        application = Application.objects.filter(client_id=client_id).first()
        if application is None:
            raise Http404
        run_in_transaction(partial(services.end_grant, request.user, application, by=request.user))
        return redirect("oauth-grants")
