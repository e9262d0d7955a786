"""A page as it is read: its links, elements, forms and text."""

import html
import re
from html.parser import HTMLParser

import pytest

from tests.conftest import PASSWORD, new_client

HTML = "text/html"


class Parsed(HTMLParser):
    """The links and elements of a page, its forms with the fields that they send, its text."""

    def __init__(self, text):
        super().__init__()
        self.links, self.tags, self.fields, self.forms, self.headers, self.text = [], [], {}, {}, [], []
        self.inputs = {}
        self._form = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append((tag, given))
        if tag == "a":
            self.links.append(given["href"])
        if tag == "form":
            self._form = given.get("data-method", given.get("class", "sign-out"))
            self.forms[self._form] = given
        if "data-name" in given:
            self.fields.setdefault(self._form, {})[given["data-name"]] = given
        if "data-header" in given:
            self.headers.append(given["data-header"])
        if tag in {"input", "textarea", "select"} and "id" in given:
            self.inputs[given["id"]] = given

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def signed_in():
    """Signs a user in, and returns a function that requests pages in that session."""

    def sign_in(user):
        client = new_client()
        client.force_login(user)

        def ask(path, method="GET", body=b"", content_type="", **headers):
            given = {"Accept": HTML} | {name.replace("_", "-"): value for name, value in headers.items()}
            return client.generic(method, path, body, content_type, headers=given)

        ask.client = client
        return ask

    return sign_in


@pytest.fixture
def ada(make_user, signed_in):
    return signed_in(make_user("admin", name="Ada Admin", password=PASSWORD))


@pytest.fixture
def uma(make_user):
    return make_user("user", name="Uma User")


@pytest.fixture
def page_of():
    def parse(response, status=200):
        assert response.status_code == status, response.content[:500]
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        return Parsed(response.content.decode())

    return parse


def shown_json(response):
    """The JSON of the response that a page shows, as text."""
    found = re.search(rb'<pre class="json">(.*?)</pre>', response.content, re.DOTALL)[1].decode()
    return html.unescape(re.sub("<[^>]*>", "", found))


def ada_token(ask):
    """The CSRF token of a page's forms."""
    return re.search(rb'name="csrf-token" content="([^"]+)"', ask("/").content)[1].decode()
