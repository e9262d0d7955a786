from django.core.exceptions import ValidationError

LONGEST_PASSWORD = 128


class MaximumLengthValidator:
    """Refuses passwords that are too long for any door: hashing takes time that grows with them."""

    def validate(self, password: str, user: object = None) -> None:
        if len(password) > LONGEST_PASSWORD:
            raise ValidationError(self.get_help_text())

    def get_help_text(self) -> str:
        return f"Your password may have at most {LONGEST_PASSWORD} characters."
