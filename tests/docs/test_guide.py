"""The guide as pages: complete, linked, and true of the service that shows it."""

import json
import re
from dataclasses import replace
from datetime import date
from html import unescape
from html.parser import HTMLParser

import pytest
from django.utils.html import strip_tags

from config.http.errors import ErrorCode
from config.site import documentation
from tests.api.wire import send
from tests.conftest import Caller

# A reader takes in no more at once.
MAX_WORDS_OF_A_SENTENCE = 30


class Document(HTMLParser):
    """The ids and the addresses of a page, and its headings by their depth."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" else []
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []


def text_of(path: str) -> str:
    response = send("GET", path)
    assert (response.status_code, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8"), path
    return response.content.decode()


@pytest.fixture
def freshly_rendered():
    """For a test that changes what the guide is made of: to render it takes a fifth of a second."""
    documentation.get_guide.cache_clear()
    yield
    documentation.get_guide.cache_clear()


def test_every_file_of_the_guide_is_a_page():
    assert {file.stem for file in documentation.GUIDE_FOLDER.glob("*")} == set(documentation.PAGES)


@pytest.mark.parametrize("name", documentation.PAGES)
def test_page_is_in_order(db, name):
    page = Document(text_of(f"/docs/{name}"))
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in zip(page.headings, page.headings[1:], strict=False))
    assert len(set(page.ids)) == len(page.ids)
    assert {f"/docs/{other}" for other in documentation.PAGES} <= set(page.links)


@pytest.fixture(scope="module")
def followed() -> dict[str, list[str]]:
    """The ids at each address that was there: each page leads to all others."""
    return {}


@pytest.mark.parametrize("path", ["/docs", *(f"/docs/{name}" for name in documentation.PAGES)])
def test_every_link_leads_somewhere(admin: Caller, followed, path):
    for link in set(Document(text_of(path)).links):
        address, _, fragment = (path + link if link[0] in "#?" else link).partition("#")
        if address not in followed:
            response = admin.fetch("GET", address)
            if response.status_code == 302:
                # To the sign-in page, for people.
                response = admin.fetch("GET", response["Location"])
            assert response.status_code == 200, link
            is_page = response["Content-Type"].startswith("text/html")
            followed[address] = Document(response.content.decode()).ids if is_page else []
        assert not fragment or fragment in followed[address], link


@pytest.mark.parametrize("name", documentation.PAGES)
def test_sentences_are_short(name):
    text = re.sub(r"```.*?```", "", (documentation.GUIDE_FOLDER / f"{name}.md").read_text(), flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "#"))]
    paragraphs = re.split(r"\n\s*\n|\n(?=\* |\d+\. )", "\n".join(lines))
    sentences = [part for paragraph in paragraphs for part in re.split(r"(?<=[.!?:])\s+", paragraph)]
    assert [sentence for sentence in sentences if len(sentence.split()) > MAX_WORDS_OF_A_SENTENCE] == []


def test_every_code_has_an_entry_that_says_what_to_do(db):
    source = (documentation.GUIDE_FOLDER / "errors.md").read_text()
    entries = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", source, re.MULTILINE | re.DOTALL))
    ids = Document(text_of("/docs/errors")).ids
    assert set(entries) == set(ErrorCode)
    for code in ErrorCode:
        assert "**What to do:**" in entries[code], code
        assert f'"code": "{code}"' in entries[code]
        section = source[: source.index(f"### `{code}`")].rpartition("\n## ")[2].partition("\n")[0]
        assert str(code.status) in section, code
        path, _, fragment = code.help.partition("#")
        assert path == "/docs/errors"
        assert fragment in ids


def test_page_of_versions_tells_what_the_settings_say(db, settings, freshly_rendered):
    first, second = settings.API_VERSIONS
    settings.API_VERSIONS = (first, replace(second, deprecated=date(2031, 2, 3), sunset=date(2033, 4, 5)))
    text = text_of("/docs/versions")
    for told in ("1 December 2028", "5 April 2033"):
        assert f">{told}</td>" in text
    assert all(change.split("`")[0] in text for change in second.changes)


def test_pages_name_the_service_that_shows_them(db, settings, freshly_rendered):
    settings.PUBLIC_URL, settings.API_VENDOR = "https://api.shop.example", "shop"
    first = unescape(strip_tags(text_of("/docs/first-request")))
    assert "export ORIGIN=https://api.shop.example\n" in first
    assert 'ORIGIN = "https://api.shop.example"\n' in first
    assert 'const ORIGIN = "https://api.shop.example"\n' in first
    assert "application/vnd.shop.v2+json" in text_of("/docs/versions")


def test_what_stands_in_a_file_is_text_and_no_markup(tmp_path, monkeypatch, freshly_rendered):
    for name in documentation.PAGES:
        (tmp_path / f"{name}.md").write_text("# T\n\n<script>alert(1)</script>\n\n```console\n$ <b>\n<i>\n```\n")
    monkeypatch.setattr(documentation, "GUIDE_FOLDER", tmp_path)
    body = documentation.get_guide()["errors"].introduction
    assert not re.search("<(script|b|i)>", body)
    assert "&lt;script&gt;" in body


def test_every_call_is_shown_in_three_languages(db):
    for name in documentation.PAGES:
        text, source = text_of(f"/docs/{name}"), (documentation.GUIDE_FOLDER / f"{name}.md").read_text()
        calls = len(re.findall(r"^\$ curl ", source, re.MULTILINE))
        for language in ("curl", "python", "javascript"):
            assert text.count(f'class="call in-{language}"') >= calls, (name, language)


def test_no_command_has_an_address_that_curl_takes_for_several():
    """Brackets are a range of addresses to it, braces a set."""
    commands = [
        line
        for path in documentation.GUIDE_FOLDER.glob("*.md")
        for line in re.findall(r"(?m)^.*\bcurl .*$", path.read_text())
    ]
    addresses = [address for line in commands for address in re.findall(r"""\$(?:API|ORIGIN)\b[^"' ]*""", line)]
    assert len(addresses) > 50
    assert [address for address in addresses if re.search(r"[\[\]{}]", address)] == []


def test_each_page_describes_itself_to_search_engines_in_its_own_words(db):
    found = {}
    for path in ("/", "/docs", *(f"/docs/{name}" for name in documentation.PAGES)):
        response = send("GET", path, headers={"Accept": "text/html"})
        (found[path],) = re.findall(r'<meta name="description" content="([^"]+)">', response.content.decode())
    assert len(set(found.values())) == len(found)
    assert unescape(found["/docs/first-request"]) in " ".join(strip_tags(text_of("/docs/first-request")).split())


def test_search_finds_every_section_at_an_address_that_there_is(db):
    index = json.loads(send("GET", "/docs/search.json").content)
    ids = {name: set(Document(text_of(f"/docs/{name}")).ids) for name in documentation.PAGES}
    for entry in index:
        path, _, fragment = entry["address"].partition("#")
        assert not fragment or fragment in ids[path.removeprefix("/docs/")], entry["address"]
    sections = sum(len(page.sections) for page in documentation.get_guide().values())
    assert len(index) == len(documentation.PAGES) + sections
    (found,) = [entry for entry in index if entry["title"] == "IDEMPOTENCY_KEY_REUSED"]
    assert "different request has used this key" in found["text"]
    assert "invoice-1" in found["text"]


@pytest.mark.parametrize("version", [1, 2])
def test_requests_file_has_every_operation(db, version):
    response = send("GET", f"/docs/requests.http?version={version}")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert f'filename="users-v{version}.http"' in response.headers["Content-Disposition"]
    sent = re.findall(r"^(GET|POST|PUT|PATCH|DELETE) \{\{origin\}\}(\S+)$", response.content.decode(), re.MULTILINE)
    document = json.loads(send("GET", f"/openapi.json?version={version}").content)
    described = {
        (method.upper(), path.replace("{", "{{").replace("}", "}}"))
        for path, methods in document["paths"].items()
        for method in methods
    }
    assert len(sent) == len(described)
    assert set(sent) == described


def test_requests_file_is_sent_as_it_stands(admin: Caller):
    """Its POST of a payment, with the variables of the file replaced as an editor would."""
    text = send("GET", "/docs/requests.http").content.decode()
    (request,) = [part for part in text.split("### ") if part.startswith("Create payment\n")]
    head, _, body = request.partition("\n\n")
    lines = head.splitlines()[1:]
    assert lines[0] == "POST {{origin}}/api/v2/payments"
    given = dict(line.replace("{{$guid}}", "one-2-three").split(": ", 1) for line in lines[1:])
    assert given.pop("X-API-Key") == "{{key}}"
    answer = Caller(headers=admin.headers | given)("POST", "/api/v2/payments", raw=body.strip().encode())
    assert answer.status == 201, answer


@pytest.mark.parametrize(("query", "version"), [("", 2), ("?version=1", 1), ("?version=2", 2)])
def test_reference_is_of_the_version_that_was_asked_for_or_the_newest(db, query, version):
    text = text_of(f"/docs{query}")
    assert f'data-schema="/openapi.json?version={version}"' in text
    assert f'<a href="?version={version}" aria-current="page">' in text


@pytest.mark.parametrize("version", [1, 2])
def test_postman_collection_has_every_operation(db, version):
    collection = json.loads(send("GET", f"/docs/postman.json?version={version}").content)
    requests = [item["request"] for folder in collection["item"] for item in folder["item"]]
    sent = {(each["method"], "/" + re.sub(r":(\w+)", r"{\1}", "/".join(each["url"]["path"]))) for each in requests}
    document = json.loads(send("GET", f"/openapi.json?version={version}").content)
    assert sent == {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    (payment,) = [each for each in requests if (each["method"], each["url"]["path"][-1]) == ("POST", "payments")]
    assert {"key": "Idempotency-Key", "value": "{{$guid}}"} in payment["header"]
    assert json.loads(payment["body"]["raw"])["amount"]


def test_rfc_of_jwt_is_named_for_jwt_alone(db):
    """Not for the opaque tokens of OAuth and of the metrics."""
    schemes = json.loads(send("GET", "/openapi.json?version=2").content)["components"]["securitySchemes"]
    assert [name for name, scheme in schemes.items() if "8725" in json.dumps(scheme)] == ["bearer"]


@pytest.mark.parametrize("version", [1, 2])
def test_reference_repeats_no_text_and_describes_every_field_of_a_body(db, version):
    document = json.loads(send("GET", f"/openapi.json?version={version}").content)
    schemas = document["components"]["schemas"]
    for methods in document["paths"].values():
        for operation in methods.values():
            summary = operation["summary"]
            assert not operation["description"].startswith(f"{summary}.")
            assert not re.search(r"(\w+) of the \1$|api key", summary), summary
            for response in operation["responses"].values():
                codes = re.findall(r"`([A-Z_]+)`", response.get("description", ""))
                assert len(set(codes)) == len(codes), summary
            for content in operation.get("requestBody", {}).get("content", {}).values():
                schema = content["schema"]
                schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
                fields = schema.get("properties", {})
                assert [
                    name for name in fields if "description" not in fields[name] and "$ref" not in fields[name]
                ] == []
