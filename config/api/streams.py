"""Whole lists as a stream: NDJSON and CSV, from the same addresses, for clients that prefer these types.

All rows under the filters, the search, the order and `fields` of the request, in one snapshot and in constant memory.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.renderers import BaseRenderer

from config.api.listing.keyset import KeysetQuery
from config.api.listing.pagination import MODES, ListPagination, build_query
from config.api.listing.query import INCLUDE
from config.api.representation.renderers import CSVRenderer, NDJSONRenderer, StreamRenderer
from config.api.versions.table import Change, has
from config.api.versions.versioning import find_response_version
from config.api.views import ConventionsMixin
from config.http import compression
from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.postgresql.snapshots import snapshot
from config.postgresql.transactions import get_lock_number, try_advisory_lock

SINCE = Change.NO_UNKNOWN_NAMES
# The memory of a row is bounded, too: a post has up to 20,000 characters.
ROWS_OF_A_PIECE = 200
# This much is made before the status is sent: a failure until then is an error like any other.
FIRST_BYTES = 32 * 1024
# Each has a thread for as long as it takes, and holds a snapshot. Other requests must find a thread, too.
MAX_STREAMS_OF_A_PROCESS = 2
RETRY_AFTER_SECONDS = 5
_places = BoundedSemaphore(MAX_STREAMS_OF_A_PROCESS)


class StreamMixin(ConventionsMixin):
    """What a viewset does with a list that is requested as a stream. One that overrides `list` asks `is_stream`."""

    def get_renderers(self: Any) -> list[BaseRenderer]:
        renderers: list[BaseRenderer] = super().get_renderers()
        return [*renderers, NDJSONRenderer(), CSVRenderer()] if self.may_stream() else renderers

    def may_stream(self: Any) -> bool:
        """Whether the request is one for a list, in a version in which it may be streamed."""
        if self.action != "list" or self.request is None:
            return False
        # Not the view's paginator, which would be a reference cycle.
        has_pages = self.pagination_class is not None and issubclass(self.pagination_class, ListPagination)
        return has_pages and has(find_response_version(self.request), SINCE)

    @property
    def is_stream(self) -> bool:
        """Whether the list is requested as a stream."""
        return isinstance(self.request.accepted_renderer, StreamRenderer)

    def stream(self: Any) -> HttpResponseBase:
        """The response that is the whole list.

        Raises:
            DomainError: VALIDATION_ERROR for what a stream does not have, NOT_FOUND; RATE_LIMITED for a caller that has
                one already, SERVICE_UNAVAILABLE where there are too many.
        """
        self.check_parent()
        # It has no tag: none of those in If-Match is its own.
        self.preconditions.check_match("")
        query = build_query(self.filter_queryset(self.get_queryset()), self)
        self._refuse_pages()
        self.parameters.check()
        pieces = self._read(query)
        total = next(pieces)
        renderer: StreamRenderer = self.request.accepted_renderer
        headers = {"Content-Type": renderer.content_type} | ({} if total is None else {"X-Total-Count": str(total)})
        if self.request.method == "HEAD":
            pieces.close()
            return StreamResponse(iter(()), pieces.close, headers=headers)
        return respond(self.request, pieces, headers | {"Cache-Control": self.cache_control})

    def _refuse_pages(self: Any) -> None:
        parameters = self.parameters
        names = (*MODES, "limit")
        parameters.know(*names)
        for name in names:
            if name in parameters.query:
                parameters.refuse(name, "A stream returns the whole list. Omit this parameter.")
        if INCLUDE in parameters.query:
            parameters.refuse(INCLUDE, "A stream returns only the items of the list. Omit this parameter.")
        if self.enveloped and "envelope" in parameters.query:
            parameters.refuse("envelope", "A stream has no envelope. Omit this parameter.")

    def _read(self: Any, query: KeysetQuery) -> Generator[Any]:
        """First the total, None where a page would not tell an exact one, then the content in pieces."""
        renderer: StreamRenderer = self.request.accepted_renderer
        names = [name for name in self.readable_fields if name in self.field_names]
        alias = query.queryset.db
        with open_snapshot(self.principal.user.pk, alias):
            yield query.fetch_exact_total()
            yield renderer.render_beginning(names)
            for rows in read_rows(query.build_all().using(alias)):
                yield renderer.render_rows(self.represent(rows))


class StreamResponse(StreamingHttpResponse):
    """A response whose end is the proof that it is complete: one that fails half-way must never seem to end.

    A server sends it chunked, and cuts the connection where an iteration over it raises.

    Args:
        pieces: of the content.
        release: frees the source of the pieces, when all are sent or the client has left.
        options: Django's.
    """

    def __init__(self, pieces: Iterator[bytes], release: Callable[[], None], **options: object) -> None:
        super().__init__(pieces, **options)
        self._release = release

    def close(self) -> None:
        try:
            self._release()
        finally:
            super().close()


def read_rows(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """The rows by a cursor of the server, some at a time."""
    found = rows.iterator(chunk_size=ROWS_OF_A_PIECE)
    while some := list(islice(found, ROWS_OF_A_PIECE)):
        yield some


def respond(request: HttpRequest, pieces: Generator[bytes], headers: Mapping[str, str]) -> HttpResponseBase:
    """A response of pieces that are made while it is sent; an ordinary one, whose length is known, where they are few.

    Args:
        request: which says what codings are accepted.
        pieces: of the content. They are closed where nobody wants the rest.
        headers: of the response.

    Raises:
        DomainError: VALIDATION_ERROR for more than a few pieces over HTTP/1.0.
    """
    first = b""
    while len(first) < FIRST_BYTES and (piece := next(pieces, None)) is not None:
        first += piece
    is_whole = len(first) < FIRST_BYTES
    response = HttpResponse(first, headers=dict(headers))
    coding = compression.choose_coding(request, response, len(first))
    if is_whole:
        if coding:
            compression.compress(response)
        return response
    if request.META.get("SERVER_PROTOCOL") == "HTTP/1.0":
        pieces.close()
        message = "HTTP/1.0 cannot signal an incomplete stream. Use HTTP/1.1 or read the list in pages."
        raise invalid(Detail("", message))
    rest = chain([first], pieces)
    stream = StreamResponse(compression.compress_pieces(rest) if coding else rest, pieces.close)
    stream.headers = response.headers
    if coding:
        stream["Content-Encoding"] = coding
    return stream


@contextmanager
def open_snapshot(user_id: int, alias: str) -> Iterator[None]:
    """One state of the database to make a stream of, as long as there are places for it.

    Args:
        user_id: whose stream it is.
        alias: of the database.

    Raises:
        DomainError: RATE_LIMITED for a user that has a stream already, SERVICE_UNAVAILABLE where there are too many.
    """
    seconds = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    if not _places.acquire(blocking=False):
        message = "Too many streams are running. Try again."
        raise DomainError(ErrorCode.SERVICE_UNAVAILABLE, message, headers=seconds)
    try:
        with snapshot(alias, settings.MAX_STREAM_SECONDS):
            # Held until the transaction ends, also where its process dies.
            if not try_advisory_lock(get_lock_number(f"stream {user_id}"), alias):
                message = "Another stream of yours is still running. Try again when it has ended."
                raise DomainError(ErrorCode.RATE_LIMITED, message, headers=seconds)
            yield
    finally:
        _places.release()
