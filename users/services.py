"""Writes to users that span rows: they keep one email to a user, and the last administrator in place."""

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, connection, models, transaction
from django.db.models.functions import Cast, Now

from config import audit
from config.api.errors import Detail, DomainError, ErrorCode
from users.models import Role, Status, User

# Any constant will do, as long as nobody else takes the same advisory lock.
_ADMINISTRATORS_LOCK = 0x7573_6572


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
    if "password" in changes:
        audit.record("password.changed", user=user)
    return user


def remove(user: User) -> None:
    """Leaves a nameless tombstone of a user whose row is locked FOR UPDATE, in the caller's transaction.

    A weaker lock would let in a post that holds the user at that moment (see UserManager.hold).

    What becomes of a row that refers to the user stands beside its foreign key: CASCADE goes, PROTECT stays.

    Raises:
        DomainError: CONFLICT for the last active administrator.
    """
    if user.is_superuser:
        _keep_an_administrator(user)
    for relation in User._meta.related_objects:
        if relation.on_delete is models.CASCADE:
            rows = relation.related_model._base_manager.filter(**{relation.field.name: user.pk})
            _forget(rows)
            rows.delete()
    _forget(User.objects.filter(pk=user.pk))
    User.objects.filter(pk=user.pk).update(
        name="", email="", password="", role=Role.USER, status=Status.INACTIVE, removed_at=Now()
    )


def _forget(rows: models.QuerySet[Any]) -> None:
    """Removes what the admin's log says about rows: it quotes them, and so may name their user."""
    LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(rows.model),
        object_id__in=rows.values_list(Cast("pk", models.TextField()), flat=True),
    ).delete()


def _keep_an_administrator(leaving: User) -> None:
    """Refuses when `leaving`, whose row is locked, is the last active administrator.

    Two administrators that leave at once would each count the other: the advisory lock lets the second count
    only after the first has committed. Who holds it waits for no other lock, so it cannot deadlock.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADMINISTRATORS_LOCK])
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
        message = "Another user has this email."
        raise DomainError(ErrorCode.CONFLICT, message, [Detail("email", message)]) from None
