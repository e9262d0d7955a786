"""Writes to users that span rows: they keep one email to a user, and the last administrator in place."""

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, models, transaction
from django.db.models.functions import Now

from config.http.errors import Detail, DomainError, ErrorCode
from config.postgresql.locks import advisory_lock
from users.models import EMAIL_TAKEN, Role, Status, User

# Any constants will do, as long as nobody else takes the same advisory locks.
_ADMINISTRATORS_LOCK = 0x7573_6572
_REMOVALS_LOCK = 0x7573_6573


def create(*, name: str, email: str, role: str = Role.USER, status: str = Status.ACTIVE, password: str | None) -> User:
    """Adds a user; without a password nobody can log in as it.

    Raises:
        DomainError: CONFLICT on `email` when another user has it.
    """
    user = User(name=name, email=email, role=role, status=status)
    user.set_password(password)
    _save(user)
    return user


def change(user: User, changes: dict[str, Any]) -> User:
    """Writes new values, of the password too, to a user whose row is locked.

    A password of None leaves the user without one.

    Raises:
        DomainError: CONFLICT on `email` when another user has it, or for the last active administrator.
    """
    was_administrator = user.is_superuser
    columns = list(changes)
    for name, value in changes.items():
        if name == "password":
            user.set_password(value)
        else:
            setattr(user, name, value)
    if was_administrator and not user.is_superuser:
        _keep_an_administrator(user)
    if columns:
        _save(user, columns)
        user.refresh_from_db()
    return user


def remove(user: User) -> None:
    """Leaves a nameless tombstone of a user whose row is locked FOR UPDATE, in the caller's transaction.

    A weaker lock would let in a post that holds the user at that moment (see UserManager.lock_key_share).

    What becomes of a row that refers to the user stands beside its foreign key: CASCADE goes, PROTECT stays.

    Raises:
        DomainError: CONFLICT for the last active administrator.
    """
    # Two removals may touch each other's posts: one after the other, they cannot wait for each other.
    advisory_lock(_REMOVALS_LOCK)
    if user.is_superuser:
        _keep_an_administrator(user)
    for relation in User._meta.related_objects:
        if relation.on_delete is models.CASCADE:
            relation.related_model._default_manager.filter(**{relation.field.name: user.pk}).delete()
    # The admin's log names the rows that were written. Of all models, only a user's name is a person's.
    LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(User), object_id=str(user.pk)).delete()
    User.objects.filter(pk=user.pk).update(
        name="", email="", password="", role=Role.USER, status=Status.INACTIVE, removed_at=Now()
    )


def _keep_an_administrator(leaving: User) -> None:
    """Refuses when `leaving`, whose row is locked, is the last active administrator.

    Two administrators that leave at once would each count the other: the advisory lock lets the second count
    only after the first has committed.
    """
    advisory_lock(_ADMINISTRATORS_LOCK)
    if not User.objects.administrators().exclude(pk=leaving.pk).exists():
        raise DomainError(
            ErrorCode.CONFLICT,
            "This is the last active administrator; make another one first.",
        )


def _save(user: User, columns: list[str] | None = None) -> None:
    try:
        # A savepoint: the caller's transaction outlives the refusal.
        with transaction.atomic():
            user.save(update_fields=columns)
    except IntegrityError as error:
        if "users_email_unique" not in str(error):
            raise
        raise DomainError(ErrorCode.CONFLICT, EMAIL_TAKEN, [Detail("email", EMAIL_TAKEN)]) from None
