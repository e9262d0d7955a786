"""What the view at an address declares, for code that must know before the request runs, above all servers."""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from django.conf import settings
from django.contrib.admindocs.views import simplify_regex
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve

View = Callable[..., HttpResponseBase]

# In `<version:version>`, which Django does not take out.
_CONVERTER = re.compile(r"<\w+:")
# Ids, of which addresses differ that lead to the same view.
_NUMBER = re.compile(r"(?<=/)[0-9]+(?=/|\Z)")


def find_view(path: str) -> View | None:
    """The view function at a path, as a WSGI environment has it; None where nothing is."""
    return _find_view(_NUMBER.sub("0", path), settings.ROOT_URLCONF)


@lru_cache(maxsize=512)
def _find_view(path: str, urlconf: str) -> View | None:
    try:
        return resolve(path, urlconf).func
    except Resolver404:
        return None


@cache
def simplify_route(route: str) -> str:
    """The template of an address, with names in the place of ids and tokens."""
    return simplify_regex(_CONVERTER.sub("<", route))


def find_route(path: str) -> str:
    """The template of the address of a request; empty where nothing is."""
    try:
        return simplify_route(resolve(path).route)
    except Resolver404:
        return ""


def get_declaration(view: View | None, name: str, default: Any = None) -> Any:
    """What a view declares: by an argument of its `as_view()`, or as an attribute of its class.

    Args:
        view: a view function as `find_view` returns it.
        name: of the attribute.
        default: for a view that does not declare it, and for none.
    """
    options = getattr(view, "initkwargs", None) or getattr(view, "view_initkwargs", {})
    if name in options:
        return options[name]
    # Django REST Framework's attribute, then Django's; otherwise the function itself.
    holder = getattr(view, "cls", None) or getattr(view, "view_class", view)
    return getattr(holder, name, default)


def get_allowed_methods(view: View | None) -> list[str]:
    """The methods of a view, in the order in which its `Allow` names them; none of a function."""
    holder = getattr(view, "cls", None) or getattr(view, "view_class", None)
    if holder is None:
        return []
    actions = getattr(view, "actions", None) or {}
    present = {name for name in holder.http_method_names if name in actions or hasattr(holder, name)}
    # Django and Django REST Framework answer HEAD wherever there is a GET.
    present |= {"head"} & set(holder.http_method_names) if "get" in present else set()
    return [name.upper() for name in holder.http_method_names if name in present]
