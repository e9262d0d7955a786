"""What a view answers with."""

from typing import Any

from django.http import SimpleCookie
from django.template.response import ContentNotRenderedError
from rest_framework import response

from config.http.headers import Headers

_BLANK = vars(response.Response())


class Response(response.Response):
    """DRF's, a copy of one that was made before: to make one anew takes as long as to render what it holds."""

    def __init__(
        self, data: Any = None, status: int = 200, *, headers: dict[str, str] | None = None, **options: Any
    ) -> None:
        self.__dict__.update(
            _BLANK,
            headers=Headers(headers),
            # As `SimpleCookie()`, without a look at what it might be filled from.
            cookies=SimpleCookie.__new__(SimpleCookie),
            _container=[b""],
            _resource_closers=[],
            _post_render_callbacks=[],
            data=data,
            status_code=status,
            **options,
        )

    @property
    def rendered_content(self) -> bytes:
        """DRF's, but that what the renderer is told of the answer is not kept in the answer, as a ring."""
        renderer = self.accepted_renderer
        media_type, charset = renderer.media_type, renderer.charset
        self.headers["Content-Type"] = self.content_type or (
            f"{media_type}; charset={charset}" if charset else media_type
        )
        content = renderer.render(self.data, self.accepted_media_type, {**self.renderer_context, "response": self})
        if not content:
            del self.headers["Content-Type"]
        return content.encode(charset) if isinstance(content, str) else content

    @property
    def content(self) -> bytes:
        if not self._is_rendered:
            raise ContentNotRenderedError
        return b"".join(self._container)

    @content.setter
    def content(self, value: Any) -> None:
        if type(value) is bytes:
            # What Django makes of it, after a look at what else it might be.
            self._container, self._is_rendered = [value], True
            self.__dict__.pop("text", None)
        else:
            response.Response.content.fset(self, value)
