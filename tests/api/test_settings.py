"""The settings that requests look at are Django's own, whatever becomes of those."""

import pytest
from django.conf import settings
from django.test import override_settings

from config.api.settings import settings as looked_at


def test_what_becomes_of_a_setting_is_seen_at_once():
    before = looked_at.RATE_LIMIT_PRINCIPAL
    with override_settings(RATE_LIMIT_PRINCIPAL=before + 1):
        assert before + 1 == looked_at.RATE_LIMIT_PRINCIPAL
        settings.RATE_LIMIT_PRINCIPAL = before + 2
        assert before + 2 == looked_at.RATE_LIMIT_PRINCIPAL
        del settings.RATE_LIMIT_PRINCIPAL
        with pytest.raises(AttributeError):
            _ = looked_at.RATE_LIMIT_PRINCIPAL
    assert before == looked_at.RATE_LIMIT_PRINCIPAL
