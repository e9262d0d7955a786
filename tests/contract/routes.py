"""Every address of the service, read from the URL map, so that a new endpoint cannot be forgotten."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLResolver, get_resolver

from config.api.views import View
from config.api.viewsets import ResourceViewSet

PREFIXES = ("", "/api", "/api/v1")
VERSIONED = "api/v<version:version>/"
# What is left of the pattern of addresses with a trailing slash, as a template.
ANY_PATH = "<path>.+)/"


@dataclass(frozen=True)
class Route:
    """An address below its prefix, `users/<id>/orders` for one, and the view that answers it."""

    template: str
    view: type[Any]
    actions: tuple[tuple[str, str], ...]

    @property
    def methods(self) -> set[str]:
        """The methods that are the endpoint's own."""
        return {method.upper() for method, _ in self.actions if method in self.view.http_method_names} - {"HEAD"}

    @property
    def is_list(self) -> bool:
        return ("get", "list") in self.actions and "GET" in self.methods

    def path(self, prefix: str = "/api/v1", **ids: int | str) -> str:
        filled = self.template
        for name, value in ids.items():
            filled = filled.replace(f"<{name}>", str(value))
        return f"{prefix}/{filled}"

    def __str__(self) -> str:
        return self.template


def routes() -> list[Route]:
    """The resources' addresses and the other endpoints below `/api/v{n}`, each once."""
    return sorted(_walk(get_resolver(), ""), key=lambda route: route.template)


def resource_routes() -> list[Route]:
    return [route for route in routes() if issubclass(route.view, ResourceViewSet)]


def addresses(resolver: URLResolver, prefix: str = "", *, within: tuple[str, ...] = ()) -> Iterator[str]:
    """Every address there is, as a template. Those below an entry of `within` stand as that entry alone."""
    for entry in resolver.url_patterns:
        template = prefix + _template(str(entry.pattern))
        if isinstance(entry, URLResolver) and template not in within:
            yield from addresses(entry, template, within=within)
        else:
            yield template


def root_only() -> list[str]:
    """The paths that stand at the root alone, where no version is chosen; those below `/admin/` as `/admin/` alone."""
    there = set(addresses(get_resolver(), within=("admin/",)))
    under_api = {address for address in there if address.startswith("api")}
    versioned = {"", ANY_PATH, *(address.removeprefix(VERSIONED) for address in under_api)}
    return sorted(f"/{address}" for address in there - under_api - versioned)


def _walk(resolver: URLResolver, prefix: str) -> Iterator[Route]:
    for entry in resolver.url_patterns:
        template = prefix + _template(str(entry.pattern))
        if isinstance(entry, URLResolver):
            yield from _walk(entry, template)
        elif template.startswith(VERSIONED):
            view = entry.callback
            actions = getattr(view, "actions", None) or {
                method: method for method in View.http_method_names if hasattr(view.view_class, method)
            }
            cls = getattr(view, "cls", None) or view.view_class
            yield Route(template.removeprefix(VERSIONED), cls, tuple(sorted(actions.items())))


def _template(pattern: str) -> str:
    """A router's regular expression as the template it stands for."""
    return pattern.removeprefix("^").removesuffix("$").replace("(?P", "").replace("[^/]+)", "").replace("[^/.]+)", "")
