"""The tests of the accelerator, where it is installed."""

from django.conf import settings

collect_ignore_glob = [] if settings.FAST_PATH else ["test_*.py"]
