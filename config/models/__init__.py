"""The tables of the conventions, and the columns that every resource has."""

from config.models import resource

__all__ = ["resource"]
