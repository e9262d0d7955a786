"""The tests of the accelerator, where it is installed."""

import asyncio

import pytest
from django.conf import settings

collect_ignore_glob = [] if settings.FAST_PATH else ["test_*.py"]


@pytest.fixture
def run_together(transactional_db):
    """Runs functions as requests of one event loop. Gives what each of them returned or raised."""
    from config.fastpath.postgresql.base import start_engine

    def run(*functions, callers=None, is_given_up=lambda alias: False, prepare=lambda engine: None):
        async def run_all():
            engine = start_engine(asyncio.get_running_loop(), is_given_up)
            prepare(engine)
            calls = zip(functions, callers or range(len(functions)), strict=True)
            try:
                return await asyncio.gather(*(engine.run(*call) for call in calls), return_exceptions=True)
            finally:
                engine.close()

        return asyncio.run(run_all())

    return run
