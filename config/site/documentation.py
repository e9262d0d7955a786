"""The documentation: the guide of docs/guide, rendered at `/docs/{page}`, and the interactive reference at `/docs`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from django.conf import settings
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.api.versions import versioning
from config.api.versions.paths import VERSION_PARAMETER
from config.api.versions.table import Version
from config.api.views import ConventionsMixin
from config.http.errors import ErrorCode, not_found
from config.site.health import UnversionedMixin

GUIDE_FOLDER = Path(__file__).resolve().parents[2] / "docs/guide"
# In reading order; each is a Markdown file of that name.
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
_EXCHANGE = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
_PAGE_LINK = re.compile(r"(?P<page>[a-z-]+)\.md(?:#(?P<section>.+))?")


@dataclass(frozen=True)
class Section:
    """A heading of a page: its id, its text and its level, from 2 on."""

    id: str
    title: str
    level: int


@dataclass(frozen=True)
class Page:
    """A page of the guide.

    Attributes:
        title: the text of the first heading.
        introduction: the HTML between the first heading and the second.
        body: the HTML from the second heading on.
    """

    name: str
    title: str
    introduction: SafeString
    body: SafeString
    sections: Sequence[Section]


@cache
def get_guide() -> dict[str, Page]:
    """The pages by name, rendered once a process.

    Raises:
        OSError: a file is missing, for instance because the service was installed without docs/.
    """
    return {name: _render_page(name, (GUIDE_FOLDER / f"{name}.md").read_text()) for name in PAGES}


def _render_page(name: str, text: str) -> Page:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("fence", _render_fence)
    parser.add_render_rule("table_open", _render_table_start)
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    tokens = parser.parse(_replace_defaults(text))
    for token in tokens:
        _rewrite_page_links(token.children or ())
    title, *sections = _annotate_headings(tokens)
    # A heading is three tokens: heading_open, inline and heading_close.
    headings = (index for index, token in enumerate(tokens) if token.type == "heading_open" and index)
    second = next(headings, len(tokens))
    parts = (parser.renderer.render(part, parser.options, {}) for part in (tokens[3:second], tokens[second:]))
    # The files are our own, and HTML in them is disabled.
    introduction, body = (mark_safe(part) for part in parts)  # noqa: S308
    return Page(name, title.title, introduction, body, sections)


def _replace_defaults(text: str) -> str:
    """Replaces the origin and the vendor of `make run`, which the files show, by those of this deployment."""
    return text.replace("http://127.0.0.1:8000", settings.PUBLIC_URL).replace(
        "application/vnd.users.", f"application/vnd.{settings.API_VENDOR}."
    )


def _annotate_headings(tokens: Sequence[Token]) -> Iterator[Section]:
    """Sets the id of each heading and the title of each table, which is that of its section; yields the headings."""
    title = ""
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            title = "".join(child.content for child in following.children or ())
            token.attrSet("id", _build_id(title))
            yield Section(_build_id(title), title, int(token.tag[1:]))
        elif token.type == "table_open":
            token.meta["title"] = title


def _build_id(title: str) -> str:
    """The id that GitHub gives a heading, but an error code as it is: error bodies link to it."""
    return title if title in ErrorCode.__members__ else slugify(title)


def _rewrite_page_links(tokens: Sequence[Token]) -> None:
    """Turns links to other files of the guide into links to their pages."""
    for token in tokens:
        if token.type == "link_open" and (match := _PAGE_LINK.fullmatch(str(token.attrGet("href")))):
            section = match["section"] or ""
            code = section.upper()
            section = code if code in ErrorCode.__members__ else section
            token.attrSet("href", f"/docs/{match['page']}{'#' if section else ''}{section}")


def _render_table_start(renderer: RendererProtocol, tokens: Sequence[Token], index: int, *_: object) -> str:
    """A table in a region of its own, which scrolls if it is wider than the page, also by keyboard."""
    title = escape(tokens[index].meta["title"])
    return f'<div class="table" role="region" tabindex="0" aria-label="Table: {title}"><table>\n'


def _render_fence(renderer: RendererProtocol, tokens: Sequence[Token], index: int, *_: object) -> str:
    """A block of code, in which a console session has its commands as `kbd` and their output as `samp`."""
    content = tokens[index].content
    if tokens[index].info == "console":
        session = "".join(
            f"<kbd>{escape(match['command'])}</kbd><samp>{escape(match['output'])}</samp>"
            for match in _EXCHANGE.finditer(content)
        )
        return f'<pre class="exchange">{session}</pre>\n'
    return f"<pre><code>{escape(content)}</code></pre>\n"


@cache
def _render_inline(text: str) -> SafeString:
    return mark_safe(MarkdownIt().renderInline(text))  # noqa: S308 - texts of config.api.versions.table


class DocumentationView(UnversionedMixin, ConventionsMixin, APIView):
    """A page for people."""

    # Not in the OpenAPI document, which is for programs.
    schema = None
    renderer_classes = [TemplateHTMLRenderer]

    def render_page(self, template: str, **context: object) -> Response:
        """The response with a page.

        Args:
            template: the name of the template.
            context: its variables beside `pages`, the table of contents.
        """
        return Response({"pages": list(get_guide().values()), **context}, template_name=template)


class GuideView(DocumentationView):
    """A page of the guide."""

    template = "config/guide.html"

    def get(self, request: Request, page: str) -> Response:
        guide = get_guide()
        if page not in guide:
            raise not_found()
        position = PAGES.index(page)
        following = guide[PAGES[position + 1]] if position + 1 < len(PAGES) else None
        return self.render_page(self.template, page=guide[page], following=following)


class VersionsPageView(GuideView):
    """The page to which the links of a notice lead, with the versions there are."""

    template = "config/versions.html"

    def render_page(self, template: str, **context: object) -> Response:
        versions = [(version, [_render_inline(text) for text in version.changes]) for version in settings.API_VERSIONS]
        response = super().render_page(template, versions=versions, **context)
        # The same facts for programs.
        response["Link"] = '</versions>; rel="alternate"; type="application/json"'
        return response


class ReferenceView(DocumentationView):
    """Every endpoint of one version, to be read and to be called: the newest, unless another is asked for."""

    def get(self, request: Request) -> Response:
        has_version = VERSION_PARAMETER in request.GET
        version: Version = versioning.get_version(request) if has_version else settings.API_VERSIONS[-1]
        return self.render_page("config/reference.html", version=version, versions=settings.API_VERSIONS)
