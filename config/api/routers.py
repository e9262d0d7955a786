"""Routers whose addresses have no trailing slash, one for each form of a resource's addresses."""

from rest_framework.routers import SimpleRouter
from rest_framework_nested.routers import NestedMixin

# DRF's: the collection with its actions, then the single resource with its own (`@action`).
_COLLECTION, _ITEM = SimpleRouter.routes[:2], SimpleRouter.routes[2:]


class Router(SimpleRouter):
    """A collection and its resources: `/users` and `/users/{id}`."""

    def __init__(self) -> None:
        super().__init__(trailing_slash=False)


class ItemRouter(Router):
    """Resources whose collection has another address: `/comments/{id}`."""

    routes = _ITEM


class NestedRouter(NestedMixin, SimpleRouter):
    """The collections below one resource: `NestedRouter(router, "users", lookup="user")` for `/users/{id}/…`."""

    routes = _COLLECTION
