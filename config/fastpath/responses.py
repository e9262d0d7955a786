"""The response of a view.

Replaces: `rest_framework.response.Response`. Buys: to make one anew takes as long as to render what it holds; and a
response whose renderer context holds the response is a reference cycle, which only the garbage collector frees.
"""

from typing import Any

from django.http import SimpleCookie
from rest_framework.response import Response

from config.fastpath.headers import FastHeaders

_BLANK = vars(Response())


class FastResponse(Response):
    def __init__(
        self, data: Any = None, status: int = 200, *, headers: dict[str, str] | None = None, **options: Any
    ) -> None:
        self.__dict__.update(
            _BLANK,
            headers=FastHeaders(headers),
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
        return b"".join(self._container) if self._is_rendered else Response.content.fget(self)

    @content.setter
    def content(self, value: Any) -> None:
        if type(value) is bytes:
            # What Django makes of it, after a look at what else it might be.
            self._container, self._is_rendered = [value], True
            self.__dict__.pop("text", None)
        else:
            Response.content.fset(self, value)
