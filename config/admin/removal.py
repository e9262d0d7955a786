"""What happens to the rows that refer to removed ones, for the confirmation of a removal.

The foreign keys say it (docs/layout.md): CASCADE goes, PROTECT stays. Each number is counted up to a bound, along the
index of its foreign key, and all of them by one statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib.admin import action
from django.contrib.admin import actions as stock
from django.db.models import CASCADE, PROTECT, Model, QuerySet
from django.db.models.fields.reverse_related import ForeignObjectRel
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst

from config.admin import bounded_count


@dataclass(frozen=True)
class Effect:
    """What happens to the rows of one model.

    Attributes:
        name: the model's plural.
        count: how many there are, as text: `more than 10,000`, or `at least 5` where not all were looked at.
        fate: what happens to them.
    """

    name: str
    count: str
    fate: str


class _Related(NamedTuple):
    """Rows of one model that refer to removed ones.

    Attributes:
        rows: their keys, a queryset for each way in which they refer.
        parents: the models by whose rows they refer to removed ones; of these, too, only so many are looked at.
    """

    model: type[Model]
    fate: str
    rows: list[QuerySet]
    parents: set[type[Model]]


def get_effects(queryset: QuerySet[Model]) -> list[Effect]:
    """Counts the rows that refer to rows which are about to be removed.

    Args:
        queryset: the rows that are about to be removed; not more than an action takes.

    Returns:
        What becomes of the rows of each model that has some, those that go first.
    """
    keys = list(queryset.values_list("pk", flat=True))
    related = [*_find_deleted(queryset.model, keys), *_find_kept(queryset.model, keys)]
    if not related or not keys:
        return []
    counts = bounded_count.fetch_counts(queryset.model, keys[0], [_unite(each.rows) for each in related])
    numbers = {each.model: number for each, number in zip(related, counts, strict=True)}
    return [
        Effect(capfirst(str(each.model._meta.verbose_name_plural)), _describe(each, numbers), each.fate)
        for each in related
        if numbers[each.model]
    ]


def _find_deleted(model: type[Model], keys: Sequence[object]) -> Iterable[_Related]:
    """The rows that are deleted with rows of `model`, directly or indirectly."""
    found: dict[type[Model], _Related] = {}

    def add(relation: ForeignObjectRel, values: object, *parents: type[Model]) -> QuerySet:
        child = relation.related_model
        rows = bounded_count.limit(child._base_manager.filter(**{f"{relation.field.name}__in": values}))
        each = found.setdefault(child, _Related(child, "deleted", [], set()))
        each.rows.append(rows)
        each.parents.update(parents)
        return rows

    for relation in _get_relations(model, CASCADE):
        rows = add(relation, keys)
        for further in _get_relations(relation.related_model, CASCADE):
            add(further, rows, relation.related_model)
    return found.values()


def _find_kept(model: type[Model], keys: Sequence[object]) -> Iterator[_Related]:
    for relation in _get_relations(model, PROTECT):
        rows = relation.related_model._base_manager.filter(**{f"{relation.field.name}__in": keys})
        yield _Related(relation.related_model, "kept, identified only by user ID", [bounded_count.limit(rows)], set())


def _get_relations(model: type[Model], on_delete: object) -> list[ForeignObjectRel]:
    return [relation for relation in model._meta.related_objects if relation.on_delete is on_delete]


def _unite(querysets: Sequence[QuerySet]) -> QuerySet:
    first, *others = querysets
    return first.union(*others) if others else first


def _describe(related: _Related, numbers: Mapping[type[Model], int]) -> str:
    number = numbers[related.model]
    is_partial = any(numbers[parent] > bounded_count.MAX_COUNT for parent in related.parents)
    at_least = "at least " if is_partial and number <= bounded_count.MAX_COUNT else ""
    return f"{at_least}{bounded_count.describe(number)}"


@action(permissions=["delete"], description=stock.delete_selected.short_description)  # type: ignore[attr-defined]
def delete_selected(page: Any, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
    """Django's action, with a confirmation that says what happens to the related rows."""
    effects = () if "post" in request.POST else get_effects(queryset)
    title = f"Delete {page.opts.verbose_name_plural}"
    consequences = page.removal_consequences
    confirmation = page.confirm_action(request, queryset, "delete_selected", title, consequences, effects=effects)
    return confirmation or stock.delete_selected(page, request, queryset)
