"""What a view answers with."""

from typing import Any

from django.http import SimpleCookie
from rest_framework import response

from config.api.headers import Headers

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
