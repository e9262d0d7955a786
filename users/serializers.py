from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError as DjangoValidationError
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.fields import SkipField, empty

from config.api.representation.fields import MAX_ID, CharField, EmailField, IntegerField
from config.api.representation.serializers import ResourceSerializer
from config.http.errors import Detail, DomainError, ErrorCode, forbidden
from users import messages, services
from users.links import Purpose
from users.models import UNIQUE, Role, Status, User
from users.password_hashes import MAX_LENGTH, parse_password_hash
from users.validators import MAX_PASSWORD_LENGTH

# No set, in which what a body holds need not be found: a list has no hash.
PRIVILEGED_ROLES = (Role.ADMIN, Role.SUPPORT)


# With all defaults.
NEW_USER = User()
# Fields that only an administrator sets.
ADMINISTRATIVE = ("role", "status", "external_id")


NEW_PASSWORD = (
    "The new password: at least 8 characters, not common, not only digits, and not similar to the name or email "
    "address."
)


class ExternalIDField(CharField):
    # An older client, which does not know of it, erases nothing.
    unchanged_if_absent = True


class UserSerializer(ResourceSerializer):
    example = {
        "id": 42,
        "name": "Ada Lovelace",
        "email": "ada.lovelace@example.net",
        "role": Role.USER,
        "status": Status.ACTIVE,
        "email_verified_at": None,
        "external_id": None,
        "created_at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
        "updated_at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
    }
    # A hash takes a fiftieth of a second.
    max_lines_with = {"password": 20}
    taken_by = {"password_hash": ("POST",), "current_password": ("PUT", "PATCH")}
    email = EmailField(max_length=254, help_text="The email address.")
    external_id = ExternalIDField(
        max_length=255,
        required=False,
        allow_null=True,
        help_text="The ID of the user in another system. Only administrators can set it.",
    )
    password = CharField(
        max_length=MAX_PASSWORD_LENGTH,
        write_only=True,
        required=False,
        help_text=NEW_PASSWORD,
    )
    password_hash = CharField(
        max_length=MAX_LENGTH,
        write_only=True,
        required=False,
        help_text="A hash of the password, instead of `password`: see /docs/import-users.",
    )
    current_password = CharField(
        max_length=MAX_PASSWORD_LENGTH,
        write_only=True,
        required=False,
        help_text="Your current password: required with `password` if you change your own. Omit it otherwise.",
    )

    class Meta:
        model = User
        fields = (
            "id",
            "name",
            "email",
            "role",
            "status",
            "email_verified_at",
            "external_id",
            "password",
            "password_hash",
            "current_password",
            "created_at",
            "updated_at",
        )
        extra_kwargs = {"name": {"help_text": "The name."}}

    def to_internal_value(self, data: Mapping[str, object]) -> dict[str, object]:
        """Also checks the current password, here so that it is reported with every other problem.

        What the caller may not set is refused before any value is looked at.
        """
        if details := list(self._find_forbidden(data)):
            raise DomainError(ErrorCode.FORBIDDEN, details[0].message, details)
        problems: dict[str, object] = {}
        if self._changes_own_password and "current_password" not in data:
            problems["current_password"] = "Required to change your own password."
        elif "current_password" in data and "password" not in data:
            problems["current_password"] = "Send this only with a new password."
        if "password_hash" in data and (self.instance is not None or "password" in data):
            problems["password_hash"] = "Send this only when you create a user, instead of `password`."
        try:
            values = super().to_internal_value(data)
        except ValidationError as error:
            raise ValidationError(problems | error.detail) from None
        if problems:
            raise ValidationError(problems)
        return values

    def validate_password(self, value: str) -> str:
        # The other fields may not have been checked yet: what is too long for them is cut, it is only compared with.
        shown = self.instance or User()
        name, email = (str(self.initial_data.get(name, getattr(shown, name)))[:254] for name in ("name", "email"))
        try:
            validate_password(value, User(name=name, email=email))
        except DjangoValidationError as error:
            raise ValidationError(error.messages) from None
        return value

    def validate_password_hash(self, value: str) -> str:
        try:
            return parse_password_hash(value)
        except ValueError as error:
            raise ValidationError(str(error)) from None

    def validate_current_password(self, value: str) -> str:
        if self._changes_own_password:
            right = check_password(value, self.instance.password)
            self.context["view"].password_checks.append(right)
            if not right:
                raise ValidationError("Does not match the current password.")
        return value

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        attrs.pop("current_password", None)
        # On PUT, a field that the caller may not change and leaves out stays as it is.
        if self.instance is not None and self.principal is not None and not self.principal.user.is_administrator:
            for name in ("role", "status"):
                if name not in self.initial_data:
                    attrs.pop(name, None)
        return attrs

    def closed_fields(self) -> set[str]:
        closed, principal = super().closed_fields(), self.principal
        if principal is None or not principal.user.is_administrator:
            closed |= {*ADMINISTRATIVE}
        if self.instance is None or principal is None or self.instance.pk != principal.user.pk:
            closed.add("current_password")
        if self.instance is not None or "role" in closed or not (principal and principal.made_from_password):
            closed.add("password_hash")
        if self.instance is not None and principal and not principal.made_from_password:
            closed |= {"password", "current_password"}
        return closed

    @property
    def _changes_own_password(self) -> bool:
        """Whether a credential that may do so changes its own user's password. Another one learns nothing about it."""
        principal = self.principal
        if self.instance is None or principal is None or not principal.made_from_password:
            return False
        return self.instance.pk == principal.user.pk and "password" in self.initial_data

    def _find_forbidden(self, data: Mapping[str, object]) -> Iterator[Detail]:
        """Every field of a body that the caller may not set."""
        is_administrator = self.principal is not None and self.principal.user.is_administrator
        may_do_all = self.principal is not None and self.principal.made_from_password
        for name in ADMINISTRATIVE:
            if not self._sets(name, data):
                continue
            if not is_administrator:
                yield Detail(name, "Only an administrator can set this field.")
            elif name == "role" and data[name] in PRIVILEGED_ROLES and not may_do_all:
                yield Detail(name, "To assign this role, use a password-based credential: JWT, Basic or session.")
        if "password_hash" in data and not (is_administrator and may_do_all):
            yield Detail("password_hash", "Only an administrator with a password-based credential may set this.")
        if "password" in data and self.instance and not may_do_all:
            yield Detail("password", "To change a password, use a password-based credential: JWT, Basic or session.")

    def _sets(self, name: str, data: Mapping[str, object]) -> bool:
        """Whether a body has another value for a field than the present one, or than the default of a new user."""
        if name not in data:
            return False
        value = data[name]
        if self.partial and value is None and (default := self.get_default_of(name)) is not empty:
            # In a merge patch, null means the default.
            value = default
        return bool(value != getattr(self.instance or NEW_USER, name))

    def create(self, validated_data: dict[str, Any]) -> User:
        user = services.create(**validated_data)
        if self.principal is None and settings.REQUIRE_VERIFIED_EMAIL:
            messages.ask(Purpose.EMAIL_VERIFICATION, user)
        return user

    def create_many(self, many: Sequence[Mapping[str, Any]]) -> list[User | DomainError]:
        return services.create_many(many)

    def find_conflicts(self, lines: Sequence[Mapping[str, object]]) -> list[list[Detail]]:
        return services.find_conflicts([{name: _get_text(line, name) for name in UNIQUE} for line in lines])

    def update(self, instance: User, validated_data: dict[str, object]) -> User:
        trusts_email = self.principal is not None and self.principal.made_from_password
        return services.change(instance, validated_data, trusts_email=trusts_email)


class MessageSerializer(serializers.Serializer):
    """The response about a message that will be sent: the same, whoever it is for."""

    example = {"expires_in": 1800}

    expires_in = serializers.IntegerField(help_text="Seconds until the link expires.")


class ArchiveLineSerializer(serializers.Serializer):
    example: ClassVar[Mapping[str, object]] = {"kind": "order", "data": {"id": 3, "item": "Tea", "qty": 2}}

    kind = serializers.CharField(max_length=100)
    data = serializers.DictField()


def _get_text(line: Mapping[str, object], name: str) -> str | None:
    """The value of a line; None where it is none that a user can have."""
    value = line.get(name)
    return value if isinstance(value, str) and len(value) <= 255 else None


class OwnerField(IntegerField):
    """`user_id`: the caller when it is left out; an administrator may name another user. It never changes."""

    unchanged_if_absent = True
    # Another user is locked until the row that refers to it is there.
    needs_transaction = True
    # The locked users, if the users of many rows are locked at once.
    locked: frozenset[int] | None = None

    def __init__(self) -> None:
        super().__init__(
            required=False, help_text="The owner. Only administrators can name another user. Default: you."
        )

    @property
    def closed(self) -> bool:  # type: ignore[override]
        return self.parent.instance is not None or not self.context["principal"].user.is_administrator

    def get_default(self) -> int:
        if self.parent.instance is not None:
            raise SkipField
        return int(self.context["principal"].user.pk)

    def run_validation(self, data: object = empty) -> object:
        """Refuses another user before it looks at the value, so as not to reveal which users exist. Null means none."""
        if data is not empty and data is not None and self.parent.instance is None:
            caller = self.context["principal"].user
            if not caller.is_administrator and (type(data) is not int or data != caller.pk):
                raise forbidden("Only an administrator can act for another user.", "user_id")
        return super().run_validation(data)

    def to_internal_value(self, data: object) -> int:
        user_id = super().to_internal_value(data)
        if self.parent.instance is not None and user_id != self.parent.instance.user_id:
            raise ValidationError("Cannot be changed.")
        if user_id == self.context["principal"].user.pk:
            return user_id
        if not self._is_there(user_id):
            raise ValidationError("This user does not exist.")
        return user_id

    def prepare(self, values: Iterable[object]) -> None:
        """Locks the users of many rows, before they are validated, by one statement."""
        caller = self.context["principal"].user
        others = {value for value in values if type(value) is int and 0 < value <= MAX_ID and value != caller.pk}
        # Others are not to learn which users there are, nor may they lock them.
        self.locked = User.objects.lock_all_key_share(others) if others and caller.is_administrator else frozenset()

    def _is_there(self, user_id: int) -> bool:
        if self.locked is not None:
            return user_id in self.locked
        return 0 < user_id <= MAX_ID and User.objects.lock_key_share(user_id)
