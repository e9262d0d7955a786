"""The rows and people of the contract tests, whose requests are sent both ways."""

from tests.contract.conftest import ids, rows

__all__ = ["ids", "rows"]
