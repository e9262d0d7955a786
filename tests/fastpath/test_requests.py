"""What the fast path makes of a request is what DRF makes of it."""

import pytest
from django.test import RequestFactory
from rest_framework.request import Request, WrappedAttributeError
from rest_framework.views import APIView

from config.fastpath.http import FastAPIRequest


class Faulty(APIView):
    def authenticate(self, request):
        raise AttributeError("a bug")

    def get_authenticators(self):
        return [self]


@pytest.mark.parametrize("name", ["user", "auth"])
def test_bug_in_authentication_is_not_taken_for_a_missing_attribute(name):
    view, request = Faulty(), RequestFactory().get("/")
    for made in (Request(request, authenticators=[view]), FastAPIRequest(request, view)):
        with pytest.raises(WrappedAttributeError, match="a bug"):
            getattr(made, name)
