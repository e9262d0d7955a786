"""Answers that are sent while they are made."""

from collections.abc import Callable, Iterator

from django.http import StreamingHttpResponse

# This much is made before the status is sent: a failure until then is an error like any other.
FIRST_BYTES = 32 * 1024


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
