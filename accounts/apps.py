from django.apps import AppConfig, apps


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from accounts import backends, schema  # noqa: F401 - registers signal receivers and the security schemes

        # The admin shows it as a heading.
        apps.get_app_config("oauth2_provider").verbose_name = "OAuth"
