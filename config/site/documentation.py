"""The documentation: the guide of docs/guide, rendered at `/docs/{page}`, and the interactive reference at `/docs`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers.data import JsonLexer
from pygments.lexers.javascript import JavascriptLexer
from pygments.lexers.python import PythonLexer
from pygments.lexers.shell import BashLexer
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.api.representation.renderers import JSONRenderer
from config.api.versions import versioning
from config.api.versions.table import Version
from config.api.versions.versioning import VERSION_PARAMETER
from config.api.views import ConventionsMixin
from config.http.errors import ErrorCode, not_found
from config.site import examples
from config.site.health import UnversionedMixin

GUIDE_FOLDER = Path(__file__).resolve().parents[2] / "docs/guide"
# In reading order; each is a Markdown file of that name.
PAGES = (
    "first-request",
    "credentials",
    "mail",
    "oauth",
    "resources",
    "many-at-once",
    "import-users",
    "lists",
    "walking-lists",
    "whole-lists",
    "idempotency",
    "retries",
    "conditional-requests",
    "polling",
    *(("events", "webhooks") if settings.EVENTS else ()),
    "versions",
    "migration",
    "limits",
    "errors",
)
# The authorization server redirects the browser here, back to the reference.
OAUTH_REDIRECT = f"{settings.STATIC_URL}drf_spectacular_sidecar/swagger-ui-dist/oauth2-redirect.html"
# Made when the service starts, for it takes longer than a page may.
_LEXERS = {
    "curl": BashLexer(stripnl=False),
    "python": PythonLexer(stripnl=False),
    "javascript": JavascriptLexer(stripnl=False),
    "json": JsonLexer(stripnl=False),
}
_FORMATTER = HtmlFormatter(nowrap=True, classprefix="hl-")
_PAGE_LINK = re.compile(r"(?P<page>[a-z-]+)\.md(?:#(?P<section>.+))?")


class Section(NamedTuple):
    """A heading of a page: its id, its text and its level, from 2 on."""

    id: str
    title: str
    level: int


@dataclass(frozen=True)
class Page:
    """A page of the guide. It is rendered when it is first read: the colours of examples take their time.

    Attributes:
        title: the text of the first heading.
        sections: the headings after it.
    """

    name: str
    title: str
    sections: Sequence[Section]
    tokens: Sequence[Token]

    @cached_property
    def summary(self) -> str:
        """The first paragraph, as text."""
        paragraph = next(token for token in self.tokens[3:] if token.type == "inline")
        return "".join(" " if child.type == "softbreak" else child.content for child in paragraph.children or ())

    @cached_property
    def introduction(self) -> SafeString:
        """The HTML between the first heading and the second."""
        # A heading is three tokens: heading_open, inline and heading_close.
        return _render(self.tokens[3 : self._second_heading])

    @cached_property
    def body(self) -> SafeString:
        """The HTML from the second heading on."""
        return _render(self.tokens[self._second_heading :])

    @property
    def _second_heading(self) -> int:
        headings = (index for index, token in enumerate(self.tokens) if token.type == "heading_open" and index)
        return next(headings, len(self.tokens))


@cache
def get_guide() -> dict[str, Page]:
    """The pages by name, read once a process.

    Raises:
        OSError: a file is missing, for instance because the service was installed without docs/.
    """
    return {name: _read_page(name, (GUIDE_FOLDER / f"{name}.md").read_text()) for name in PAGES}


def _read_page(name: str, text: str) -> Page:
    # The origin and the vendor of this deployment, instead of those of `make run`.
    text = text.replace("http://127.0.0.1:8000", settings.PUBLIC_URL)
    tokens = _build_parser().parse(text.replace("application/vnd.users.", f"application/vnd.{settings.API_VENDOR}."))
    for token in tokens:
        _rewrite_page_links(token.children or ())
    title, *sections = _annotate_headings(tokens)
    return Page(name, title.title, sections, tokens)


def _render(tokens: Sequence[Token]) -> SafeString:
    parser = _build_parser()
    # The files are our own, and HTML in them is disabled.
    return mark_safe(parser.renderer.render(tokens, parser.options, {}))  # noqa: S308


@cache
def _build_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("fence", _render_fence)
    parser.add_render_rule("table_open", _render_table_start)
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


def _annotate_headings(tokens: Sequence[Token]) -> Iterator[Section]:
    """Sets the id of each heading and the title of each table, which is that of its section; yields the headings.

    Further tables of a section are numbered: no two regions of a page may have one name.
    """
    title, tables = "", 0
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            title, tables = "".join(child.content for child in following.children or ()), 0
            token.attrSet("id", _build_id(title))
            yield Section(_build_id(title), title, int(token.tag[1:]))
        elif token.type == "table_open":
            tables += 1
            token.meta["title"] = title if tables == 1 else f"{title} ({tables})"


def _build_id(title: str) -> str:
    """The id that GitHub gives a heading, but an error code as it is: error bodies link to it."""
    return title if title in ErrorCode.__members__ else slugify(title)


def _rewrite_page_links(tokens: Sequence[Token]) -> None:
    """Turns links to other files of the guide into links to their pages, and into text where there is no page."""
    is_hidden = False
    for token in tokens:
        if token.type == "link_close":
            token.hidden, is_hidden = is_hidden, False
        if token.type == "link_open" and (match := _PAGE_LINK.fullmatch(str(token.attrGet("href")))):
            token.hidden = is_hidden = match["page"] not in PAGES
            section = match["section"] or ""
            code = section.upper()
            section = code if code in ErrorCode.__members__ else section
            token.attrSet("href", f"/docs/{match['page']}{'#' if section else ''}{section}")


def _render_table_start(renderer: RendererProtocol, tokens: Sequence[Token], index: int, *_: object) -> str:
    """A table in a region of its own, which scrolls if it is wider than the page, also by keyboard."""
    title = escape(tokens[index].meta["title"])
    return f'<div class="table" role="region" tabindex="0" aria-label="Table: {title}"><table>\n'


def _render_fence(renderer: RendererProtocol, tokens: Sequence[Token], index: int, *_: object) -> str:
    """A block of code. What is shown in several languages is a block for each, of which the reader chooses one."""
    content, info = tokens[index].content, tokens[index].info
    # The line of the file: no two blocks of a page share it.
    name = f"example-{(tokens[index].map or [index])[0]}"
    if info == "console":
        return _render_session(name, content)
    if not info and (settings_shown := examples.write_settings(content)):
        return _render_languages(name, [_render_versions(settings_shown)], examples.LANGUAGES)
    if info == "python" and (other := _next_fence(tokens, index, "javascript")):
        languages = {"python": content, "javascript": other.content}
        return _render_languages(name, [_render_versions(languages)], languages)
    if info == "javascript":
        # It is shown with the Python block before it.
        return ""
    if info == "printed":
        return f'<pre class="printed" aria-label="What it prints"><samp>{escape(content)}</samp></pre>\n'
    return f"<pre><code>{_highlight(content, info)}</code></pre>\n"


def _next_fence(tokens: Sequence[Token], index: int, info: str) -> Token | None:
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    return following if following and following.type == "fence" and following.info == info else None


def _render_session(name: str, content: str) -> str:
    """A console session: its commands, each followed by what it prints."""
    parts: list[str] = []
    exchanges = list(examples.read_session(content))
    for exchange in exchanges:
        if exchange.is_call:
            python, javascript = examples.write_python(exchange), examples.write_javascript(exchange)
            parts.append(_render_versions({"curl": exchange.command, "python": python, "javascript": javascript}))
        else:
            parts.append(f'<pre class="call"><kbd>{escape(exchange.command)}</kbd></pre>')
        if exchange.printed.strip():
            answer = escape(exchange.head) + _highlight(exchange.body, "json")
            parts.append(f'<pre class="printed"><samp>{answer}</samp></pre>')
    has_call = any(exchange.is_call for exchange in exchanges)
    return _render_languages(name, parts, examples.LANGUAGES if has_call else ())


def _render_versions(texts: Mapping[str, str]) -> str:
    return "".join(
        f'<pre class="call in-{language}"><code>{_highlight(text, language)}</code></pre>'
        for language, text in texts.items()
    )


def _render_languages(name: str, parts: Sequence[str], languages: Iterable[str]) -> str:
    """Blocks of code under the choice of a language: radio buttons, which work by keyboard and without a script."""
    choices = "".join(
        f'<label><input type="radio" name="{name}" value="{language}"{"" if number else " checked"}> '
        f"{examples.LANGUAGES[language]}</label>"
        for number, language in enumerate(languages)
    )
    legend = '<legend class="unseen">Language of the example</legend>'
    choice = f'<fieldset class="languages">{legend}{choices}</fieldset>' if choices else ""
    return f'<div class="example">{choice}{"".join(parts)}</div>\n'


def _highlight(text: str, language: str) -> str:
    """HTML with a class for each kind of word: the policy refuses inline colours."""
    if language not in _LEXERS:
        return escape(text)
    return str(highlight(text, _LEXERS[language], _FORMATTER)).rstrip("\n")


@cache
def build_search_index() -> Sequence[Mapping[str, str]]:
    """Each section of the guide: its page, its title, its address and its words."""
    return [entry for page in get_guide().values() for entry in _index_page(page)]


def _index_page(page: Page) -> Iterator[Mapping[str, str]]:
    entry = {"page": page.title, "title": "", "address": f"/docs/{page.name}", "text": ""}
    sections = iter(page.sections)
    for token in page.tokens[3:]:
        if token.type == "heading_open":
            yield entry
            section = next(sections)
            entry = {**entry, "title": section.title, "address": f"/docs/{page.name}#{section.id}", "text": ""}
        elif token.type == "inline" or (token.type == "fence" and token.info == "console"):
            words = "".join(child.content or " " for child in token.children or ()) or token.content
            entry["text"] = " ".join([*entry["text"].split(), *words.split()])
    yield entry


@cache
def _render_inline(text: str) -> SafeString:
    return mark_safe(MarkdownIt().renderInline(text))  # noqa: S308 - texts of config.api.versions.table


class DocumentationView(UnversionedMixin, ConventionsMixin, APIView):
    """A page for people."""

    # Not in the OpenAPI document, which is for programs.
    schema = None
    renderer_classes = [TemplateHTMLRenderer]
    # The door of the header that led here.
    section = "Guide"

    def render_page(self, template: str, **context: object) -> Response:
        """The response with a page.

        Args:
            template: the name of the template.
            context: its variables, in addition to `pages`, the table of contents.
        """
        shown = {"section": self.section, "pages": list(get_guide().values()), **context}
        return Response(shown, template_name=template)

    def get_version(self, request: Request) -> Version:
        """The version of the API that the query names, or the newest."""
        version: Version = settings.API_VERSIONS[-1]
        return versioning.get_version(request) if VERSION_PARAMETER in request.GET else version


class GuideView(DocumentationView):
    """A page of the guide."""

    template = "config/guide.html"

    def get(self, request: Request, page: str) -> Response:
        guide = get_guide()
        if page not in guide:
            raise not_found()
        position = PAGES.index(page)
        following = guide[PAGES[position + 1]] if position + 1 < len(PAGES) else None
        previous = guide[PAGES[position - 1]] if position else None
        return self.render_page(self.template, page=guide[page], previous=previous, following=following)


class SearchIndexView(DocumentationView):
    """The index that the guide's search reads, in the reader's browser."""

    renderer_classes = [JSONRenderer]

    def get(self, request: Request) -> Response:
        return Response(build_search_index())


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
    """Every endpoint of one version, to read and to call: the newest, unless the query names another."""

    section = "Reference"

    def get(self, request: Request) -> Response:
        version = self.get_version(request)
        response = self.render_page(
            "config/reference.html",
            version=version,
            versions=settings.API_VERSIONS,
            origin=settings.PUBLIC_URL,
            client_id=settings.REFERENCE_CLIENT_ID,
            redirect=f"{settings.PUBLIC_URL}{OAUTH_REDIRECT}",
        )
        # It opens the consent page, which has no policy of its own, and waits for its answer.
        response["Cross-Origin-Opener-Policy"] = "same-origin-allow-popups"
        return response
