"""The ASGI application, for any ASGI server. `manage.py serve` runs it with a process beside each worker."""

import os

from django import setup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
setup(set_prefix=False)

from config.api.handlers import Handler  # noqa: E402 - they need the apps
from config.server.application import Application  # noqa: E402

django = Handler()
application = Application(django)
