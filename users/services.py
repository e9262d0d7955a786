"""Writes to users that span rows: they keep one email to a user, and the last administrator in place."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from users.models import UNIQUE, Role, Status, User

# Any constant will do, as long as nobody else takes the same advisory lock.
_ADMINISTRATORS_LOCK = 0x7573_6572
# A user's values by the names of UNIQUE.
UniqueKey = Mapping[str, str | None]


def create(*, password: str | None = None, password_hash: str | None = None, **fields: Any) -> User:
    """Adds a user; without a password, nobody can log in as this user.

    Args:
        password: in clear.
        password_hash: of the password, where it was hashed elsewhere, as `parse_password_hash` returns it.
        fields: of the user.

    Raises:
        DomainError: CONFLICT on what another user has and no two may have.
    """
    user = User(**fields)
    _set_password(user, password, password_hash)
    with _saving(user):
        user.save()
        audit.record_write("user.created", user=user, role=user.role)
    return user


def create_many(many: Sequence[Mapping[str, Any]]) -> list[User | DomainError]:
    """Adds users, each with values for `create`, by one statement.

    Returns:
        The users, in this order; in the place of one that has what another one has, the CONFLICT.
    """
    columns = [{name: value for name, value in each.items() if not name.startswith("password")} for each in many]
    users = build_rows(User, columns)
    for user, each in zip(users, many, strict=True):
        _set_password(user, each.get("password"), each.get("password_hash"))
    keys = [{"email": user.email, "external_id": user.external_id} for user in users]
    folded = _fold(keys)
    # The first of the lines with the same `external_id`, even if the order of their emails differs.
    firsts: dict[object, User] = {}
    alone = [index for index, user in enumerate(users) if firsts.setdefault(user.external_id or user, user) is user]
    # In one order, and so without a deadlock: who adds one of these emails at the same time is waited for.
    alone.sort(key=lambda index: str(folded[index]["email"]))
    User.objects.bulk_create([users[index] for index in alone], ignore_conflicts=True)
    added = set(User.objects.filter(pk__in=[user.pk for user in users]).order_by().values_list("pk", flat=True))
    if added:
        audit.record_write("user.created", users=sorted(added))
    if len(added) == len(users):
        return list(users)
    own = [key for key, user in zip(folded, users, strict=True) if user.pk in added]
    conflicts = _list_conflicts(folded, own)
    return [user if user.pk in added else _conflict(conflicts[index]) for index, user in enumerate(users)]


def _set_password(user: User, password: str | None, password_hash: str | None) -> None:
    if password_hash:
        user.password = password_hash
    else:
        user.set_password(password)


def find_conflicts(keys: Sequence[UniqueKey]) -> list[list[Detail]]:
    """The conflicts of each key (by the names of UNIQUE) with users, or with earlier keys."""
    return _list_conflicts(_fold(keys))


def _fold(keys: Sequence[UniqueKey]) -> list[UniqueKey]:
    emails = User.objects.all().fold_emails(*(key["email"] or "" for key in keys))
    return [{**key, "email": email or None} for key, email in zip(keys, emails, strict=True)]


def _list_conflicts(folded: Sequence[UniqueKey], own: Sequence[UniqueKey] = ()) -> list[list[Detail]]:
    """As `find_conflicts`, of keys with folded emails.

    Args:
        own: the keys that were added.
    """
    details: list[list[Detail]] = [[] for _ in folded]
    for name, label in UNIQUE.items():
        seen: set[str | None] = set()
        taken = User.objects.all().find_taken(name, [key[name] for key in folded]) - {key[name] for key in own}
        for found, value in zip(details, (key[name] for key in folded), strict=True):
            if value in taken or value in seen:
                found.append(
                    Detail(name, f"{'Another user' if value in taken else 'An earlier line'} has this {label}.")
                )
            seen |= {value} - {None}
    return details


def _conflict(details: list[Detail]) -> DomainError:
    # There are none if the other user has been removed since.
    details = details or [Detail("email", "Another user had this email address until now. Retry the request.")]
    return DomainError(ErrorCode.CONFLICT, details[0].message, details)


def change(user: User, changes: Mapping[str, Any], *, trusts_email: bool = True) -> User:
    """Writes new values, of the password too, to a user whose row is locked.

    Present values leave the row's version as it is; a password is new whatever it was. A password of None leaves the
    user without one.

    Args:
        trusts_email: whether links that set the password may be mailed to another email.

    Raises:
        DomainError: CONFLICT on what another user has and no two may have, or for the last active administrator.
    """
    if changes.get("email", user.email) != user.email:
        changes = {**changes, "email_verified_at": None, "email_is_trusted": trusts_email}
    was_administrator = user.is_superuser
    columns = [name for name, value in changes.items() if name == "password" or getattr(user, name) != value]
    for name in columns:
        if name == "password":
            user.set_password(changes[name])
        else:
            setattr(user, name, changes[name])
    if was_administrator and not user.is_superuser:
        _keep_an_administrator(user.pk)
    if columns:
        with _saving(user):
            user.save(update_fields=columns)
            # A new password is an event of its own (User.save).
            if changed := [name for name in columns if name != "password"]:
                told = {name: getattr(user, name) for name in ("role", "status") if name in changed}
                audit.record_write("user.changed", user=user, changed=changed, **told)
        user.refresh_from_db()
    return user


def remove(*users: User) -> None:
    """Leaves nameless tombstones of users whose rows are locked FOR UPDATE, in the caller's transaction.

    A weaker lock would let in a post that holds the user at that moment (see UserManager.lock_key_share).

    The foreign key of a row that refers to a user says what happens to it: with CASCADE it goes, with PROTECT it stays.
    Rows that go are invisible from the commit on (config.models.VisibleManager) and erased afterwards (config.erasure),
    so that this takes the same time whatever the users own. All credentials require an active user, so they end, too.

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
        external_id=None,
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
        message = "This is the last active administrator. Create another one first."
        raise DomainError(ErrorCode.CONFLICT, message)


@contextmanager
def _saving(user: User) -> Iterator[None]:
    """Turns the violation of a unique index by the block into a CONFLICT."""
    try:
        # A savepoint: the caller's transaction outlives the refusal.
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if not any(f"users_{name}_unique" in str(error) for name in UNIQUE):
            raise
        loaded = getattr(user, "_loaded", {})
        key, own = _fold([{name: getattr(user, name) for name in UNIQUE}, {name: loaded.get(name) for name in UNIQUE}])
        raise _conflict(*_list_conflicts([key], [own])) from None
