"""What is known of a request's view before the request is run."""

import pytest
from django.test import override_settings
from django.urls import path
from django.views import View

from config.http.url_map import find_view, get_declaration
from posts.views import PostCommentViewSet, PostViewSet


@pytest.mark.parametrize("prefix", ["", "/api", "/api/v1", "/api/v2"])
@pytest.mark.parametrize("post_id", ["5", "9223372036854775808", "x", "%00"])
def test_view_is_found_under_every_prefix_whatever_the_id(prefix: str, post_id: str) -> None:
    assert find_view(f"{prefix}/posts/{post_id}").cls is PostViewSet
    assert find_view(f"{prefix}/posts/{post_id}/comments").cls is PostCommentViewSet


@pytest.mark.parametrize("address", ["/nowhere", "*", "", "/posts/5/nothing", "/a" * 4000, "/\xc3\xa9"])
def test_no_view_is_found_where_nothing_is(address: str) -> None:
    assert find_view(address) is None
    assert get_declaration(find_view(address), "scope", "none") == "none"


class Declaring(View):
    queryset = "of the class"


urlpatterns = [path("plain", Declaring.as_view()), path("given", Declaring.as_view(queryset="of the address"))]


def test_declaration_of_an_address_wins_over_that_of_the_class() -> None:
    with override_settings(ROOT_URLCONF=__name__):
        assert get_declaration(find_view("/plain"), "queryset") == "of the class"
        assert get_declaration(find_view("/given"), "queryset") == "of the address"
        assert find_view("/posts/5") is None
    assert get_declaration(find_view("/posts/5"), "scope") == "posts"
