from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Service"

    def ready(self) -> None:
        from config import checks  # noqa: F401 - registers the system checks


class AdminConfig(admin_apps.AdminConfig):
    # Of this module, the other one is what `config` in INSTALLED_APPS means.
    default = False
    default_site = "config.admin.site.AdminSite"

    def ready(self) -> None:
        super().ready()
        # Not in the package itself, which Django imports while it still makes the site.
        from config.admin import base  # noqa: F401 - registers the tables of the conventions
