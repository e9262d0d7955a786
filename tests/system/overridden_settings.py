"""The settings of the service, some of them overridden: constants that a test shall not wait for."""

import json
import os

from config.settings import *  # noqa: F403

globals().update(json.loads(os.environ.get("OVERRIDDEN_SETTINGS", "{}")))


def override(**values: object) -> dict[str, str]:
    """The variables of a service with such settings."""
    return {"DJANGO_SETTINGS_MODULE": __name__, "OVERRIDDEN_SETTINGS": json.dumps(values)}
