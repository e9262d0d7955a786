"""Writes to users that span rows: they keep one email to a user, and the last administrator in place."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from config import audit
from config.http.errors import Detail, DomainError, ErrorCode
from config.models import Erasure
from config.postgresql.new_rows import build_rows
from config.postgresql.transactions import advisory_lock
from users.models import EMAIL_TAKEN, EMAIL_TWICE, Role, Status, User

# Any constant will do, as long as nobody else takes the same advisory lock.
_ADMINISTRATORS_LOCK = 0x7573_6572


def create(
    *,
    name: str,
    email: str,
    role: str = Role.USER,
    status: str = Status.ACTIVE,
    password: str | None,
) -> User:
    """Adds a user; without a password nobody can log in as it.

    Raises:
        DomainError: CONFLICT on `email` when another user has it.
    """
    user = User(name=name, email=email, role=role, status=status)
    user.set_password(password)
    _save(user, on_save=_record_creation)
    return user


def create_many(many: Sequence[Mapping[str, Any]]) -> list[User | DomainError]:
    """Adds users, each with values for `create`, by one statement.

    Returns:
        The users, in this order; in the place of one whose email is taken, the CONFLICT.
    """
    users = build_rows(User, [{name: value for name, value in each.items() if name != "password"} for each in many])
    for user, each in zip(users, many, strict=True):
        user.set_password(each.get("password"))
    folded = dict(zip(users, User.objects.all().fold_emails(*(user.email for user in users)), strict=True))
    # In one order, and so without a deadlock: who adds one of these emails at the same time is waited for.
    User.objects.bulk_create(sorted(users, key=folded.__getitem__), ignore_conflicts=True)
    added = set(User.objects.filter(pk__in=[user.pk for user in users]).order_by().values_list("pk", flat=True))
    # What was not added, and nobody had before, has an earlier line.
    if added:
        audit.record_write("user.created", users=sorted(added))
    own = {folded[user] for user in users if user.pk in added}
    return [user if user.pk in added else _build_conflict(folded[user] in own) for user in users]


def _record_creation(user: User) -> None:
    audit.record_write("user.created", user=user, role=user.role)


def find_conflicts(emails: Sequence[str]) -> dict[int, Detail]:
    """What is wrong with emails that users have, or that stand earlier among them, by their indexes."""
    users = User.objects.all()
    folded = users.fold_emails(*emails)
    taken, seen, conflicts = users.find_taken(folded), set(), {}
    for index, email in enumerate(folded):
        if email in taken or email in seen:
            (conflicts[index],) = _build_conflict(email not in taken).details
        seen.add(email)
    return conflicts


def _build_conflict(is_of_line: bool = False) -> DomainError:
    message = EMAIL_TWICE if is_of_line else EMAIL_TAKEN
    return DomainError(ErrorCode.CONFLICT, message, [Detail("email", message)])


def change(user: User, changes: dict[str, Any]) -> User:
    """Writes new values, of the password too, to a user whose row is locked.

    Present values leave the row's version as it is; a password is new whatever it was. A password of None leaves the
    user without one.

    Raises:
        DomainError: CONFLICT on `email` when another user has it, or for the last active administrator.
    """
    was_administrator = user.is_superuser
    columns = [name for name, value in changes.items() if name == "password" or getattr(user, name) != value]
    for name in columns:
        if name == "password":
            user.set_password(changes[name])
        else:
            setattr(user, name, changes[name])
    if "email" in columns and user.email_verified_at is not None:
        user.email_verified_at = None
        columns.append("email_verified_at")
    if was_administrator and not user.is_superuser:
        _keep_an_administrator(user.pk)
    if columns:
        _save(user, columns, on_save=partial(_record_changes, columns=columns))
        user.refresh_from_db()
    return user


def _record_changes(user: User, columns: Collection[str]) -> None:
    # A new password is an event of its own (User.save).
    changed = [name for name in columns if name != "password"]
    if changed:
        told = {name: getattr(user, name) for name in ("role", "status") if name in changed}
        audit.record_write("user.changed", user=user, changed=changed, **told)


def remove(*users: User) -> None:
    """Leaves nameless tombstones of users whose rows are locked FOR UPDATE, in the caller's transaction.

    A weaker lock would let in a post that holds the user at that moment (see UserManager.lock_key_share).

    What becomes of a row that refers to a user stands beside its foreign key: CASCADE goes, PROTECT stays. What goes is
    invisible from the commit on (config.models.VisibleManager) and erased after it (config.erasure), so that this takes
    the same time whatever the users own. Their credentials end with them: all ask for an active user.

    Raises:
        DomainError: CONFLICT for the last active administrator.
    """
    ids = [user.pk for user in users]
    if any(user.is_superuser for user in users):
        _keep_an_administrator(*ids)
    User.objects.filter(pk__in=ids).update(
        name="",
        email="",
        password="",
        role=Role.USER,
        status=Status.INACTIVE,
        removed_at=Now(),
        email_verified_at=None,
    )
    Erasure.objects.bulk_create(Erasure(user_id=pk) for pk in ids)
    # The admin's log names the rows that were written. Of all models, only a user's name is a person's.
    about_users = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(User))
    about_users.filter(object_id__in=map(str, ids)).delete()
    for user_id in ids:
        audit.record_write("user.removed", removed=user_id)


def _keep_an_administrator(*leaving: int) -> None:
    """Refuses when no active administrator is left without those who leave, by their ids; their rows are locked.

    Two administrators that leave at once would each count the other: the advisory lock lets the second count
    only after the first has committed.
    """
    advisory_lock(_ADMINISTRATORS_LOCK)
    if not User.objects.administrators().exclude(pk__in=leaving).exists():
        raise DomainError(
            ErrorCode.CONFLICT,
            "This is the last active administrator. Create another one first.",
        )


def _save(user: User, columns: list[str] | None = None, on_save: Callable[[User], None] | None = None) -> None:
    try:
        # A savepoint: the caller's transaction outlives the refusal.
        with transaction.atomic():
            user.save(update_fields=columns)
            if on_save:
                on_save(user)
    except IntegrityError as error:
        if "users_email_unique" not in str(error):
            raise
        raise _build_conflict() from None
