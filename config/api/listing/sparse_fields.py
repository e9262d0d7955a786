"""Sparse fields: `?fields=id,name` on lists and single resources."""

from collections.abc import Sequence

from config.api.listing.query import Parameters


def read(parameters: Parameters, known: Sequence[str]) -> frozenset[str] | None:
    """The fields that were asked for; None when the request does not choose."""
    value = parameters.get("fields")
    if value is None:
        return None
    names = value.split(",")
    chosen = frozenset(names)
    if "" in chosen:
        parameters.refuse("fields", f"Must not hold an empty name. Known: {', '.join(known)}.")
    elif unknown := sorted(chosen.difference(known)):
        parameters.refuse("fields", f"Unknown: {', '.join(unknown)}. Known: {', '.join(known)}.")
    elif len(chosen) < len(names):
        parameters.refuse("fields", "Must not name a field twice.")
    return chosen
