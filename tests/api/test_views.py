"""What stands between Django and an app's view does what DRF's does, and keeps less."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from django.test import RequestFactory
from rest_framework.test import APIRequestFactory, force_authenticate

from config.api.principal import ALL_SCOPES, Principal
from config.api.requests import StrictRequest
from tests.conftest import Caller, fast_path_only, new_client
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


@fast_path_only
@pytest.mark.parametrize(
    ("method", "address", "body"),
    [
        ("GET", "/users", ""),
        ("GET", "/users?cursor=", ""),
        ("GET", "/users/{}", ""),
        ("GET", "/users/{}?fields=id", ""),
        ("GET", "/users/{}/orders", ""),
        ("OPTIONS", "/users/{}", ""),
        ("POST", "/orders", '{"item": "a", "qty": 1}'),
        ("POST", "/payments", '{"amount": 1}'),
        ("PATCH", "/users/{}", '{"name": "Ada"}'),
    ],
)
def test_answered_request_is_gone_without_the_garbage_collector(
    admin: Caller, method: str, address: str, body: str
) -> None:
    path = f"/api/v1{address.format(admin.user.pk)}"
    headers = {**(admin.headers or {}), "Idempotency-Key": "one"}
    request = RequestFactory().generic(method, path, body, "application/json", headers=headers)
    thresholds = gc.get_threshold()
    gc.collect()
    # Of other tests, which hold them.
    before = _requests()
    gc.set_threshold(0)
    try:
        assert new_client().handler.get_response(request).status_code in {200, 201}
        assert [one for one in _requests() if all(one is not other for other in before)] == []
    finally:
        gc.set_threshold(*thresholds)


def _requests() -> list[StrictRequest]:
    return [one for one in gc.get_objects() if type(one) is StrictRequest]
