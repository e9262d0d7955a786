"""The Content-Security-Policy of every answer."""

from django.http import HttpRequest, HttpResponse

from config.http.headers import set_default_headers
from config.http.middleware import GetResponse

# The browsable API, the admin and the documentation: scripts and styles from our own files, none inline.
_PAGE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}
# Data shows nothing, also where a browser is made to take it for a page.
_DATA = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}


class ContentPolicyMiddleware:
    """Gives an answer its policy, unless its view gave one of its own (accounts.pages)."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        set_default_headers(response, _PAGE if is_page else _DATA)
        return response
