"""A change form that overwrites nothing unseen: it carries the version of what it shows, as the API's `If-Match` does.

The version is a digest of each field and not of the whole row: a comment on a post is no conflict for somebody who
edits its title, and fields that only somebody else has changed can be told from those that were changed here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from django import forms
from django.http import QueryDict
from django.utils.text import capfirst

if TYPE_CHECKING:
    from django.forms import BoundField

VERSION = "_version"
_DIGEST_LENGTH = 16


class Conflict(NamedTuple):
    """A field that somebody else changed.

    Attributes:
        label: the name of the field.
        present: its value in the database.
        submitted: its value in the form.
    """

    label: str
    present: str
    submitted: str


class VersionedForm(forms.ModelForm):
    """A form that is invalid when a value which it shows was changed after it was opened.

    The fields are then ready to be saved again: with the current values, and the user's own where they were changed.
    """

    conflicts: tuple[Conflict, ...] = ()

    @property
    def version(self) -> str:
        """The version of the row that the form was filled in from."""
        return " ".join(f"{field.name}:{_digest(_get_present(field))}" for field in self._get_fields())

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        # A form without a version is no page's: like a request without If-Match, it asks for no comparison.
        if VERSION in self.data:
            self._refuse_overwriting(_parse_version(self.data[VERSION]))
        return cleaned

    def _get_fields(self) -> Iterator[BoundField]:
        return (self[name] for name, field in self.fields.items() if not field.disabled)

    def _refuse_overwriting(self, opened: Mapping[str, str]) -> None:
        """Adds an error when a field has another value in the database than in the form and than it had when opened.

        Args:
            opened: the digest of each field when the form was opened.
        """
        changed = [field for field in self._get_fields() if _digest(_get_present(field)) != opened.get(field.name)]
        changed = [field for field in changed if _get_submitted(self, field) != _get_present(field)]
        if not changed:
            return
        self.conflicts = tuple(
            Conflict(capfirst(str(field.label)), _get_present(field), _get_submitted(self, field)) for field in changed
        )
        untouched = [field for field in changed if _digest(_get_submitted(self, field)) == opened.get(field.name)]
        self.data = _replace(self.data, untouched)
        name = self._meta.model._meta.verbose_name
        self.add_error(None, f"This {name} was changed after you opened this page. Nothing was saved.")


def _parse_version(text: str) -> dict[str, str]:
    return {name: digest for name, _, digest in (part.partition(":") for part in text.split(" "))}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


def _get_present(field: BoundField) -> str:
    return _to_text(field, field.initial)


def _get_submitted(form: forms.ModelForm, field: BoundField) -> str:
    """The value of a field as the form would save it; as it was typed where that is invalid."""
    return _to_text(field, form.cleaned_data.get(field.name, field.data))


def _to_text(field: BoundField, value: object) -> str:
    """A value as text, the same for that of the database and for that of the form."""
    prepared = field.field.prepare_value(value)
    if isinstance(prepared, list | tuple | set):
        return ", ".join(sorted(map(str, prepared)))
    return "" if prepared is None else str(prepared).replace("\r\n", "\n")


def _replace(data: Any, fields: list[BoundField]) -> QueryDict:
    """A copy of submitted data, in which fields have the values of the database."""
    replaced: QueryDict = data.copy()
    for field in fields:
        present = field.field.prepare_value(field.initial)
        values = list(present) if isinstance(present, list | tuple | set) else ["" if present is None else present]
        replaced.setlist(field.html_name, values)
    return replaced
