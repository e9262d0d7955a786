"""What stands between Django and an app's view does what DRF's does, and keeps less."""

from __future__ import annotations

from typing import Any

from rest_framework.test import APIRequestFactory, force_authenticate

from config.api.principal import ALL_SCOPES, Principal
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
