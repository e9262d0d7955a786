"""The documentation: a guide, written in docs/guide and shown at `/docs/{page}`, and the interactive reference."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from config.api.listing.query import VERSION_PARAMETER
from config.api.permissions import PublicPermission
from config.api.versions import versioning
from config.api.versions.table import Version
from config.api.views import Conventions
from config.fastpath.responses import Response
from config.http.errors import ErrorCode, not_found

FOLDER = Path(__file__).resolve().parents[2] / "docs/guide"
# The pages in the order in which one reads them: each is a Markdown file of that name.
PAGES = (
    "first-request",
    "credentials",
    "oauth",
    "resources",
    "lists",
    "idempotency",
    "conditional-requests",
    "versions",
    "limits",
    "errors",
)
_EXCHANGE = re.compile(r"^\$ (?P<command>.*)\n(?P<answer>(?:(?!\$ ).*\n)*)", re.MULTILINE)
_ELSEWHERE = re.compile(r"(?P<page>[a-z-]+)\.md(?:#(?P<section>.+))?")


@dataclass(frozen=True)
class Section:
    """A heading of a page: where it is, what it says, and from 2 on how deep it stands."""

    id: str
    title: str
    level: int


@dataclass(frozen=True)
class Page:
    """A page of the guide, as HTML: what its first heading says, what stands before the next one, and the rest."""

    name: str
    title: str
    introduction: SafeString
    body: SafeString
    sections: Sequence[Section]


@cache
def guide() -> dict[str, Page]:
    """The pages by name, rendered once a process.

    Raises:
        OSError: a page is not there, as where the service was installed without docs/.
    """
    return {name: _rendered(name, (FOLDER / f"{name}.md").read_text()) for name in PAGES}


def _rendered(name: str, text: str) -> Page:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("table_open", _table)
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    tokens = parser.parse(_of_this_deployment(text))
    for token in tokens:
        _lead_elsewhere(token.children or ())
    title, *sections = _sections(tokens)
    # A heading is three tokens: its beginning, its text and its end.
    headings = (at for at, token in enumerate(tokens) if token.type == "heading_open" and at)
    middle = next(headings, len(tokens))
    parts = (parser.renderer.render(part, parser.options, {}) for part in (tokens[3:middle], tokens[middle:]))
    # The files are our own, and HTML in them is off.
    introduction, body = (mark_safe(part) for part in parts)  # noqa: S308
    return Page(name, title.title, introduction, body, sections)


def _of_this_deployment(text: str) -> str:
    """The files show the service as `make run` starts it."""
    return text.replace("http://127.0.0.1:8000", settings.PUBLIC_URL).replace(
        "application/vnd.users.", f"application/vnd.{settings.API_VENDOR}."
    )


def _sections(tokens: Sequence[Token]) -> Iterator[Section]:
    """The headings, each of which is given an id to be linked to; a table, the title of its section."""
    title = ""
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            title = "".join(child.content for child in following.children or ())
            token.attrSet("id", _id(title))
            yield Section(_id(title), title, int(token.tag[1:]))
        elif token.type == "table_open":
            token.meta["title"] = title


def _id(title: str) -> str:
    """As GitHub makes it of a heading; but an error code stands for itself, since the errors link to it."""
    return title if title in ErrorCode.__members__ else slugify(title)


def _lead_elsewhere(tokens: Sequence[Token]) -> None:
    """A link to another file becomes one to its page."""
    for token in tokens:
        if token.type == "link_open" and (found := _ELSEWHERE.fullmatch(str(token.attrGet("href")))):
            section = found["section"] or ""
            code = section.upper()
            section = code if code in ErrorCode.__members__ else section
            token.attrSet("href", f"/docs/{found['page']}{'#' if section else ''}{section}")


def _table(renderer: Any, tokens: Sequence[Token], index: int, *_: Any) -> str:
    """A table that is wider than the page scrolls by itself, with the keyboard too."""
    title = escape(tokens[index].meta["title"])
    return f'<div class="table" role="region" tabindex="0" aria-label="Table: {title}"><table>\n'


def _fence(renderer: Any, tokens: Sequence[Token], index: int, *_: Any) -> str:
    """A block of code; of exchanges, what one types is told from what one reads."""
    content = tokens[index].content
    if tokens[index].info == "console":
        shown = "".join(
            f"<kbd>{escape(found['command'])}</kbd><samp>{escape(found['answer'])}</samp>"
            for found in _EXCHANGE.finditer(content)
        )
        return f'<pre class="exchange">{shown}</pre>\n'
    return f"<pre><code>{escape(content)}</code></pre>\n"


@cache
def _inline(text: str) -> SafeString:
    return mark_safe(MarkdownIt().renderInline(text))  # noqa: S308 - of our own table


class DocumentationView(Conventions, APIView):
    """A page for people. It stands at the root only and needs no credential."""

    # No endpoint of the reference, which is for programs.
    schema = None
    permission_classes = [PublicPermission]
    authentication_classes = ()
    versioning_class = None
    renderer_classes = [TemplateHTMLRenderer]

    def page(self, template: str, **context: Any) -> Response:
        return Response({"pages": list(guide().values()), **context}, template_name=template)


class GuideView(DocumentationView):
    """A page of the guide."""

    template = "config/guide.html"

    def get(self, request: Request, page: str) -> Response:
        found = guide().get(page)
        if found is None:
            raise not_found()
        position = PAGES.index(page)
        following = guide()[PAGES[position + 1]] if position + 1 < len(PAGES) else None
        return self.page(self.template, page=found, following=following)


class VersionsPageView(GuideView):
    """The page to which the links of a notice lead, with the versions there are."""

    template = "config/versions.html"

    def page(self, template: str, **context: Any) -> Response:
        versions = [(version, [_inline(text) for text in version.changes]) for version in settings.API_VERSIONS]
        response = super().page(template, versions=versions, **context)
        # Programs find the same facts one link further.
        response["Link"] = '</versions>; rel="alternate"; type="application/json"'
        return response


class ReferenceView(DocumentationView):
    """Every endpoint of one version, to be read and to be called: the newest, unless another is asked for."""

    def get(self, request: Request) -> Response:
        asked = VERSION_PARAMETER in request.GET
        version: Version = versioning.of(request) if asked else settings.API_VERSIONS[-1]
        return self.page("config/reference.html", version=version, versions=settings.API_VERSIONS)
