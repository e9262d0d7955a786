"""`?api_key=` is taken out of the query, however often it stands there."""

import time
from urllib.parse import unquote_plus

from django.http import HttpResponse
from django.test import RequestFactory

from config.http.middleware import RequestMiddleware
from config.http.request_state import get_state


def test_very_many_keys_are_taken_out_at_once() -> None:
    request = RequestFactory().get("/users", QUERY_STRING="&".join(f"api_key={number}&a" for number in range(20_000)))
    start = time.monotonic()
    RequestMiddleware(lambda request: HttpResponse())(request)
    assert time.monotonic() - start < 1
    assert len(get_state(request.META).secret_parameters) == 20_000
    assert request.META["QUERY_STRING"] == "&".join("a" * 20_000)


def test_key_is_taken_out_however_its_name_is_spelt() -> None:
    for query, rest in [
        ("a=1&&%61pi_key=k&b=2", "a=1&b=2"),
        ("api%5fkey=k&b", "b"),
        ("api_key", ""),
        ("a=1&&b=api_key", "a=1&&b=api_key"),
        ("api+key=k", "api+key=k"),
        ("a=%31&&b", "a=%31&&b"),
    ]:
        request = RequestFactory().get("/users", QUERY_STRING=query)
        RequestMiddleware(lambda request: HttpResponse())(request)
        assert request.META["QUERY_STRING"] == rest
        names = [unquote_plus(part.partition("=")[0]) for part in query.split("&")]
        assert len(get_state(request.META).secret_parameters) == names.count("api_key")
