from django.conf import settings

if settings.FAST_PATH:
    from tests.fastpath.conftest import run_together, sent

    __all__ = ["run_together", "sent"]
