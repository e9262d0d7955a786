from django.core.exceptions import ValidationError

MAX_PASSWORD_LENGTH = 128


class MaximumLengthValidator:
    """Refuses passwords that are too long for any door: hashing takes time that grows with them."""

    def validate(self, password: str, user: object = None) -> None:
        if len(password) > MAX_PASSWORD_LENGTH:
            raise ValidationError(self.get_help_text())

    def get_help_text(self) -> str:
        return f"Your password can have at most {MAX_PASSWORD_LENGTH} characters."
