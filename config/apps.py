from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin import apps as admin_apps
from django.db.models.signals import post_migrate


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Service"

    def ready(self) -> None:
        from config import checks  # noqa: F401 - registers the system checks
        from config.postgresql import (
            events,
            statements,  # noqa: F401 - receives a signal for each new connection
        )
        from config.postgresql.replicas import hosts  # noqa: F401 - likewise

        post_migrate.connect(events.switch, sender=self)

        if settings.QUOTA_URL:
            # Before the workers are forked, and before a request waits for it.
            from config.api.limits import redis_counters  # noqa: F401


class AdminConfig(admin_apps.AdminConfig):
    # `config` in INSTALLED_APPS means the other class of this module.
    default = False
    default_site = "config.admin.site.AdminSite"

    def ready(self) -> None:
        # config/admin/__init__.py stays empty: Django imports the package for config.admin.site, before there is a site
        # to register models with. The apps' admin pages, which super().ready() imports, follow in the registry.
        from config.admin import records  # noqa: F401 - registers the admin pages of config's own tables

        if settings.EVENTS:
            from config.admin import webhooks  # noqa: F401 - likewise

        super().ready()
