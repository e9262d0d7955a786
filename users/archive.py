"""Everything that belongs to a user, as one stream.

A model that refers to a user declares next to its foreign key which fields of a row belong to the user: `archived`, the
names of fields, none of which is a secret. It is empty for rows that only copy what other rows hold.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Model
from django.db.models.fields.reverse_related import ForeignObjectRel

from config.api.streams import read_rows
from users.models import User

# For libraries, whose models cannot declare it.
OF_LIBRARIES: Mapping[str, Sequence[str]] = {
    # Actions of others, in words that may name others.
    "admin.LogEntry": (),
    # Lives for a minute.
    "oauth2_provider.Grant": (),
    # Goes with a refresh token, which tells the same, or was given to an application of the user's.
    "oauth2_provider.AccessToken": (),
    "oauth2_provider.RefreshToken": ("id", "application__name", "created", "revoked"),
    "oauth2_provider.IDToken": (),
    "oauth2_provider.DeviceGrant": (),
}
OWN = ("id", "name", "email", "role", "status", "email_verified_at", "external_id", "created_at", "updated_at")


def get_archived_fields(model: type[Model]) -> Sequence[str] | None:
    """The fields of a model's rows that the archive of the user they refer to has; None if the model declares none."""
    declared: Sequence[str] | None = getattr(model, "archived", OF_LIBRARIES.get(model._meta.label))
    return declared


def read_archive(user_id: int, alias: str) -> Iterator[list[Mapping[str, object]]]:
    """The rows, each with the name of its model, some at a time, the user's own first.

    Args:
        user_id: of a user that is there.
        alias: of the database.
    """
    yield from _read(User, "pk", user_id, OWN, alias)
    relations: Sequence[ForeignObjectRel] = User._meta.related_objects
    for relation in sorted(relations, key=lambda found: found.related_model._meta.label):
        if fields := get_archived_fields(relation.related_model):
            yield from _read(relation.related_model, relation.field.name, user_id, fields, alias)


def _read(
    model: Any, key: str, user_id: int, fields: Sequence[str], alias: str
) -> Iterator[list[Mapping[str, object]]]:
    rows = model._default_manager.using(alias).filter(**{key: user_id}).order_by("pk").values(*fields)
    for some in read_rows(rows):
        yield [{"kind": model._meta.model_name, "data": row} for row in some]
