"""Removed users whose rows are still to be erased, and the manager that leaves these rows out (config.erasure)."""

from typing import Any, TypeVar

from django.conf import settings
from django.db import models

from config.postgresql.visibility import IsVisible

AnyModel = TypeVar("AnyModel", bound=models.Model)


class Erasure(models.Model):
    """A removed user who may still have rows (config.erasure)."""

    # CASCADE: the last one to go, when nothing else of the user is left.
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True)
    archived = ()

    def __str__(self) -> str:
        return f"erasure of user {self.user_id}"


class VisibleManager(models.Manager[AnyModel]):
    """The rows that go with no removed user. What belongs to one is reached by `including_erased` alone.

    A model whose rows go with their user has it as its default manager (a test asks for it).
    """

    def get_queryset(self) -> models.QuerySet[AnyModel]:
        return self.including_erased().filter(IsVisible(self.model))

    def including_erased(self) -> Any:
        """All rows, also those that are still to be erased."""
        return super().get_queryset()
