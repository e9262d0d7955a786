"""What stands between Django and an app's view does what DRF's does, and keeps less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.urls import get_resolver
from rest_framework.test import APIRequestFactory, force_authenticate

from config.api.principal import ALL_SCOPES, Principal
from config.api.representation.fields import StrictField
from config.api.representation.serializers import ResourceSerializer, StrictSerializer
from tests.conftest import Caller
from users.views import UserViewSet


def test_user_may_be_given_by_drfs_tools_for_tests(user: Caller) -> None:
    request = APIRequestFactory().get("/users")
    force_authenticate(request, user.user, Principal(user.user, ALL_SCOPES, "jwt"))
    answer = UserViewSet.as_view({"get": "list"})(request).render()
    assert [row["id"] for row in answer.data["data"]] == [user.user.pk]


def test_header_that_a_view_adds_stands_beside_those_of_all(user: Caller) -> None:
    class Marked(UserViewSet):
        def list(self, request: Any, *args: Any, **kwargs: Any) -> Any:
            self.headers |= {"X-Mark": "1", "Vary": "X-Mark"}
            return super().list(request, *args, **kwargs)

    request = APIRequestFactory().get("/users")
    force_authenticate(request, user.user, Principal(user.user, ALL_SCOPES, "jwt"))
    answer = Marked.as_view({"get": "list"})(request).render()
    assert (answer["X-Mark"], answer["Allow"]) == ("1", "GET, HEAD, OPTIONS")
    assert {"X-Mark", "Accept", "Cookie"} < set(answer["Vary"].split(", "))


def find_subclasses(kind: Any) -> Iterator[Any]:
    for one in kind.__subclasses__():
        yield one
        yield from find_subclasses(one)


def test_every_field_that_can_be_written_takes_json_as_it_is() -> None:
    """DRF's own fields take a text for a number."""
    assert get_resolver().url_patterns
    # The fast path derives classes from those of other tests, too, in a module of its own.
    kinds = [
        kind
        for kind in find_subclasses(StrictSerializer)
        if kind is not ResourceSerializer and not any(one.__module__.startswith("tests.") for one in kind.__mro__)
    ]
    fields = [(kind.__name__, name, field) for kind in kinds for name, field in kind().fields.items()]
    assert len(fields) > 50
    assert [each[:2] for each in fields if not (each[2].read_only or isinstance(each[2], StrictField))] == []
