from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError as DjangoValidationError
from rest_framework.exceptions import ValidationError

from config.api.errors import forbidden
from config.api.serializers import GREATEST_ID, Email, Integer, ResourceSerializer, Text
from users import services
from users.models import Role, User

PRIVILEGED_ROLES = frozenset({Role.ADMIN, Role.SUPPORT})


class UserSerializer(ResourceSerializer):
    email = Email(max_length=254)
    password = Text(max_length=128, write_only=True, required=False)
    current_password = Text(max_length=128, write_only=True, required=False)

    class Meta:
        model = User
        fields = (
            "id",
            "name",
            "email",
            "role",
            "status",
            "password",
            "current_password",
            "created_at",
            "updated_at",
        )
        kept = frozenset({"password", "current_password"})

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        current_password = attrs.pop("current_password", None)
        self._check_password(attrs, current_password)
        self._keep_what_is_not_the_callers(attrs)
        self._check_privileges(attrs)
        return attrs

    @property
    def _is_self(self) -> bool:
        return self.instance is not None and self.principal is not None and self.instance.pk == self.principal.user.pk

    def _check_password(self, attrs: dict[str, Any], current_password: str | None) -> None:
        if "password" not in attrs:
            if current_password is not None:
                raise ValidationError({"current_password": "Goes with a new password only."})
            return
        if self.instance is not None and self.principal and not self.principal.made_from_password:
            raise forbidden("Changing a password needs a credential made from the password.", "password")
        problems: dict[str, Any] = {}
        shown = self.instance or User()
        try:
            validate_password(
                attrs["password"],
                User(name=attrs.get("name", shown.name), email=attrs.get("email", shown.email)),
            )
        except DjangoValidationError as error:
            problems["password"] = error.messages
        if self._is_self:
            if current_password is None:
                problems["current_password"] = "Is required to change one's own password."
            elif not self.instance.check_password(current_password):
                problems["current_password"] = "Is not the current password."
        if problems:
            raise ValidationError(problems)

    def _keep_what_is_not_the_callers(self, attrs: dict[str, Any]) -> None:
        """On PUT, a field that the caller may not change and leaves out stays as it is."""
        if self.instance is None or self.principal is None or self.principal.user.is_administrator:
            return
        for name in ("role", "status"):
            if name not in self.initial_data:
                attrs.pop(name, None)

    def _check_privileges(self, attrs: dict[str, Any]) -> None:
        present = self.instance or User()
        changed = {name for name in ("role", "status") if name in attrs and attrs[name] != getattr(present, name)}
        if not changed:
            return
        if self.principal is None or not self.principal.user.is_administrator:
            raise forbidden("Only an administrator may set this.", *sorted(changed))
        gives = "role" in changed and attrs["role"] in PRIVILEGED_ROLES
        if gives and not self.principal.made_from_password:
            raise forbidden("Giving this role needs a credential made from the password.", "role")

    def create(self, validated_data: dict[str, Any]) -> User:
        return services.create(**{"password": None, **validated_data})

    def update(self, instance: User, validated_data: dict[str, Any]) -> User:
        return services.change(instance, validated_data)


class OwnerField(Integer):
    """`user_id`: the caller when it is left out; an administrator may name another user."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, **options})

    def get_default(self) -> int:
        return int(self.context["request"].auth.user.pk)

    def to_internal_value(self, data: Any) -> int:
        user_id = super().to_internal_value(data)
        caller = self.context["request"].auth.user
        if user_id == caller.pk:
            return user_id
        if not 0 < user_id <= GREATEST_ID or not User.objects.filter(pk=user_id).exists():
            raise ValidationError("There is no such user.")
        if not caller.is_administrator:
            raise forbidden("Only an administrator may act for another user.", "user_id")
        return user_id
