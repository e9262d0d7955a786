from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.base import ModelState
from django.db.models.lookups import Exact, StartsWith
from django.utils.crypto import salted_hmac

from config import audit
from config.api.principal import Principal
from config.api.representation.text import is_storable, validate_line, validate_visible
from config.http.errors import not_found
from config.models import ChangingResource, keep_updated_at, track_words
from config.postgresql.compiling import fetch_rows
from config.postgresql.events import track_events
from config.postgresql.row_counts import track_counts
from config.postgresql.transactions import lock_key_share
from users.password_hashes import MAX_LENGTH

# Fields that no two users share, and their names in errors; any number of users may have None.
UNIQUE = {"email": "email address", "external_id": "external_id"}


class Role(models.TextChoices):
    ADMIN = "admin"
    SUPPORT = "support"
    USER = "user"


class Status(models.TextChoices):
    ACTIVE = "active"
    INACTIVE = "inactive"


class Folded(Func):
    """The form in which emails are compared: normalized, and without case.

    Only the database folds, since no two libraries fold alike. `lower()` under collation C folds ASCII only, so it gets
    another; its result needs no further normalization. ASCII is already normalized, and `normalize()` is slow.
    """

    template = (
        "(CASE WHEN octet_length(%(expressions)s) = char_length(%(expressions)s)"
        ' THEN lower(%(expressions)s COLLATE "pg_c_utf8")'
        ' ELSE normalize(lower(normalize(%(expressions)s, NFKC) COLLATE "pg_c_utf8"), NFKC) END)'
    )
    output_field = models.CharField()

    def as_sql(self, *args: Any, **options: Any) -> Any:
        sql, params = super().as_sql(*args, **options)
        return sql, [*params] * self.template.count("%(expressions)s")


# How a hash begins that was made here (accounts.hashers). One from elsewhere never does (users.password_hashes).
PASSWORD_PREFIX = "argon2$argon2id$"


class IsForeignHash(Func):
    """Whether a password was hashed elsewhere. Literal, as in the index that finds one."""

    template = f"(%(expressions)s !~ '^(!|{re.escape(PASSWORD_PREFIX)})')"
    output_field = models.BooleanField()


_FOLD = f"""
SELECT {Folded.template % {"expressions": "email"}}
FROM unnest(%s::text[]) WITH ORDINALITY AS given (email, number) ORDER BY number
"""  # noqa: S608 - of constants


# Each request with a token needs it. It is no more secret than the password hash that it is made from.
@lru_cache(maxsize=1024)
def _hash_credentials(seen: str, secret: str) -> str:
    return salted_hmac("users.User.get_session_auth_hash", seen, secret, algorithm="sha256").hexdigest()


class UserQuerySet(models.QuerySet["User"]):
    def visible_to(self, principal: Principal) -> UserQuerySet:
        """The users that the caller may read: everybody for the staff, oneself for a plain user."""
        return self if principal.user.is_staff else self.filter(pk=principal.user.pk)

    def with_email(self, email: str) -> UserQuerySet:
        """The user of an email, compared as Folded on the unique index."""
        if not is_storable(email):
            return self.none()
        return self.filter(Exact(Folded("email"), Folded(Value(email))))

    def with_email_beginning(self, start: str) -> UserQuerySet:
        """The users whose email begins so, compared in the same way on the same index."""
        if not is_storable(start):
            return self.none()
        return self.filter(StartsWith(Folded("email"), Folded(Value(start))))

    def fold_emails(self, *emails: str) -> list[str]:
        """Emails in the form in which they are compared, in one statement; as they are where no user can have them."""
        known = [email for email in emails if is_storable(email)]
        if not known:
            return list(emails)
        folded = dict(zip(known, (row[0] for row in fetch_rows(_FOLD, [known], self.db)), strict=True))
        return [folded.get(email, email) for email in emails]

    def find_taken(self, name: str, values: Collection[str | None]) -> frozenset[str]:
        """Which values of a UNIQUE column users have, of folded emails for one, on its index in one statement."""
        known = [value for value in values if value and is_storable(value)]
        if not known:
            return frozenset()
        compared = Folded("email") if name == "email" else F(name)
        rows = self.annotate(compared=compared).filter(compared__in=known)
        return frozenset(rows.order_by().values_list("compared", flat=True))

    def with_foreign_hash(self) -> UserQuerySet:
        return self.filter(IsForeignHash("password"))

    def administrators(self) -> UserQuerySet:
        return self.filter(role=Role.ADMIN, status=Status.ACTIVE)


class OwnedQuerySet(models.QuerySet):
    """Rows with a `user`: the staff sees all of them, a plain user its own."""

    def visible_to(self, principal: Principal) -> OwnedQuerySet:
        return self if principal.user.is_staff else self.filter(user_id=principal.user.pk)


class UserManager(BaseUserManager["User"].from_queryset(UserQuerySet)):  # type: ignore[misc]
    """Users that are there; tombstones are reached through `User._base_manager` only, and by foreign keys."""

    def get_queryset(self) -> UserQuerySet:
        return UserQuerySet(self.model, using=self._db).filter(removed_at=None)

    def lock_key_share(self, user_id: int) -> bool:
        """Keeps a user from being removed until the transaction ends. False when it is removed already.

        The lock is the one a foreign key takes: it delays a removal, and no other write to the user.
        """
        return bool(lock_key_share(self.filter(pk=user_id).order_by()))

    def lock_all_key_share(self, user_ids: Collection[int]) -> frozenset[int]:
        """As `lock_key_share`, of many users by one statement. Returns the ids of those that are there."""
        # In one order, for somebody else may be about to lock several of them, too.
        return lock_key_share(self.filter(pk__in=sorted(user_ids)).order_by("pk"))

    def lock_key_share_with_credentials(self, user: User) -> bool:
        """Keeps a user, and the credentials that it has, from being ended until the transaction ends.

        False if either has happened since `user` was read. Check this before you create a credential: the request was
        authenticated a moment ago, by a credential that may have been ended since.
        """
        same = self.filter(pk=user.pk, credentials_ended_at=user.credentials_ended_at)
        return bool(lock_key_share(same.order_by()))


@track_events("user", "name", "email", "role", "status", "email_verified_at", "external_id", tombstone="removed_at")
@track_counts("role", "status", present="removed_at IS NULL")
@track_words("name", "email")
class User(AbstractBaseUser, ChangingResource):
    name = models.CharField(max_length=200, db_collation="C", validators=[validate_line])
    email = models.EmailField(max_length=254, db_collation="C", validators=[validate_visible])
    role = models.CharField(max_length=7, choices=Role, default=Role.USER)
    status = models.CharField(max_length=8, choices=Status, default=Status.ACTIVE)
    # When a link mailed to it was used (users.links).
    email_verified_at = models.DateTimeField(null=True, editable=False)
    # Not if it was changed by a credential that is not based on the password (services.change): a caller that may not
    # change the password must not be mailed a link that sets it.
    email_is_trusted = models.BooleanField(db_default=True, editable=False)
    # The user's id in another system. None if unknown, because a unique column can hold an empty text only once.
    external_id = models.CharField(  # noqa: DJ001
        max_length=255, null=True, blank=True, db_collation="C", validators=[validate_line]
    )
    # As long as the hashes of other systems are.
    password = models.CharField(max_length=MAX_LENGTH)
    removed_at = models.DateTimeField(null=True, editable=False)
    # When an administrator ended all there was but the password (accounts.services.end_credentials).
    credentials_ended_at = models.DateTimeField(null=True, editable=False)
    last_login = None

    objects = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = ["name"]

    class Meta(ChangingResource.Meta):
        # A list that is filtered by role or status is read as the parts that the two divide it into
        # (KeysetQuery.parts), each of them in order from one index. Undivided, the list has an index of its own for
        # each sort.
        indexes = [
            *(
                models.Index(fields=[column, "id"], name=f"users_{column}", condition=Q(removed_at=None))
                for column in ("name", "email", "created_at", "updated_at")
            ),
            *(
                models.Index(
                    fields=["role", "status", *columns],
                    name=f"users_role_status_{columns[0]}",
                    condition=Q(removed_at=None),
                )
                for columns in (["id"], ["name", "id"], ["email", "id"], ["created_at", "id"], ["updated_at", "id"])
            ),
            # Empty, once all have logged in (accounts.passwords).
            models.Index(
                fields=["id"], name="users_foreign_hash", condition=Q(IsForeignHash("password"), removed_at=None)
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                Folded("email"),
                name="users_email_unique",
                condition=Q(removed_at=None),
                violation_error_message="This email is taken.",
            ),
            models.UniqueConstraint(
                fields=["external_id"],
                name="users_external_id_unique",
                condition=~Q(external_id=None),
                violation_error_code="unique",
                violation_error_message="Another user has this external_id.",
            ),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="users_role_known"),
            models.CheckConstraint(condition=Q(status__in=Status.values), name="users_status_known"),
            models.CheckConstraint(
                condition=Q(removed_at=None) & ~Q(name="") & ~Q(email="")
                | Q(removed_at__isnull=False, name="", email="", password="", external_id=None, status=Status.INACTIVE),
                name="users_named_or_removed",
            ),
        ]
        triggers = [
            *ChangingResource.Meta.triggers,
            keep_updated_at("name", "email", "role", "status", "email_verified_at", "external_id"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.email})" if self.removed_at is None else f"removed user {self.pk}"

    @classmethod
    def from_db(cls, db: str | None, field_names: Collection[str], values: Collection[object], **options: Any) -> User:
        # Django's `__init__` asks of each field whether its value was given: most of a credential's look-up.
        user = cls.__new__(cls)
        user._loaded = loaded = dict(zip(field_names, values, strict=True))
        user._state = ModelState()
        user._state.db, user._state.adding = db, False
        vars(user).update(loaded)
        return user

    def save(self, *args: Any, update_fields: Iterable[str] | None = None, **options: Any) -> None:
        """Writes only the fields of an existing user that changed since it was read.

        Django's forms and commands save whole rows: read before a removal and written after it, such a row would
        bring the user back. They also set passwords, which is noted here for every door.

        Raises:
            DomainError: NOT_FOUND if the user has been removed since.
        """
        if self._state.adding:
            super().save(*args, update_fields=update_fields, **options)
            return
        loaded = getattr(self, "_loaded", {})
        names = update_fields or [name for name, value in loaded.items() if getattr(self, name) != value]
        changes = {name: getattr(self, name) for name in names}
        if changes and not User.objects.filter(pk=self.pk).update(**changes):
            raise not_found()
        if "password" in changes:
            audit.record("password.changed", user=self)
        self._loaded = loaded | changes

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """What a session stores of the user as of the sign-in.

        Django takes the password's hash alone. With the time the credentials were ended a session that is being opened
        at that moment is as dead as all others, without one being looked for.
        """
        seen = f"{self.password} {self.credentials_ended_at or ''}"
        return _hash_credentials(seen, secret or settings.SECRET_KEY)

    @property
    def is_active(self) -> bool:  # type: ignore[override]
        return self.status == Status.ACTIVE and self.removed_at is None

    @property
    def is_administrator(self) -> bool:
        return self.role == Role.ADMIN

    @property
    def is_staff(self) -> bool:
        """Administrators and support read everything, here and in the Django admin."""
        return self.role in {Role.ADMIN, Role.SUPPORT}

    @property
    def is_superuser(self) -> bool:
        return self.is_active and self.is_administrator

    def has_perm(self, permission: str, obj: object = None) -> bool:
        """The Django admin's question: administrators do everything there, support only looks."""
        return self.is_superuser or (self.is_active and self.is_staff and ".view_" in permission)

    def has_perms(self, permissions: list[str], obj: object = None) -> bool:
        return all(self.has_perm(permission) for permission in permissions)

    def has_module_perms(self, app_label: str) -> bool:
        return self.is_active and self.is_staff
