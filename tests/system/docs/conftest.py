from tests.docs.conftest import language, variables

__all__ = ["language", "variables"]
