"""Routers whose addresses have no trailing slash, one for each form of a resource's addresses."""

from rest_framework.routers import Route, SimpleRouter
from rest_framework_nested.routers import NestedMixin

_COLLECTION, _ITEM = (route for route in SimpleRouter.routes if isinstance(route, Route))


class Router(SimpleRouter):
    """A collection and its resources: `/users` and `/users/{id}`."""

    routes = [_COLLECTION, _ITEM]

    def __init__(self) -> None:
        super().__init__(trailing_slash=False)


class ItemRouter(Router):
    """Resources whose collection stands elsewhere: `/comments/{id}`."""

    routes = [_ITEM]


class NestedRouter(NestedMixin, SimpleRouter):
    """The collections below one resource: `NestedRouter(router, "users", lookup="user")` for `/users/{id}/…`."""

    routes = [_COLLECTION]
