from django.apps import AppConfig


class FastPathConfig(AppConfig):
    """Among INSTALLED_APPS where FAST_PATH is true."""

    name = "config.fastpath"
    label = "fastpath"

    def ready(self) -> None:
        from config.fastpath import checks, replacements  # noqa: F401 - registers the system checks

        replacements.install()
