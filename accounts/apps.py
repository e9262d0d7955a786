from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from accounts import backends, schema  # noqa: F401 - registers signal receivers and the security schemes
