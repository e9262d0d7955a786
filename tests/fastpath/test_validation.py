"""Accelerated serializers find in a body what the reference, DRF's own functions, finds in it."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ValidationError as DjangoValidationError
from rest_framework import serializers

from config.api.principal import ALL_SCOPES, Principal
from config.api.representation.fields import MAX_ID
from config.fastpath.serializers import accelerate
from config.http.errors import DomainError
from config.http.json import UnusableNumber
from orders.serializers import OrderSerializer
from tests.fastpath.test_serializers import SERIALIZERS
from users.models import Role, User, UserManager

EVERY_SERIALIZER = pytest.mark.parametrize("serializer_class", SERIALIZERS, ids=lambda found: found.__name__)
CALLER, NOBODY = 5, 7
ANY = [
    *(None, True, False, 0, 1, -1, 5, 6, 7, 3_000_000, MAX_ID, MAX_ID + 1, 10**39),
    *map(Decimal, ("0.001", "0", "-5", "12.345", "1E+20", "1E-20", "9999999999.99", "1.0")),
    *("", " ", "\u00a0", "a", " a ", "a\nb", "a\x00", "\x85", "\ud800", "é" * 101, "x" * 25_000),
    *("2", "1e2", "+1.5", "12.345", "٢", "a@", "a@example.com", "admin", "Admin", "active", "password"),
    *("2030-01-31T12:00:00", "2020-01-31t12:00:00+05:30", "2130-02-30T12:00:00Z"),
    *([], {}, ["users:read", "users:read"], ["no"], [None], {"a": []}, UnusableNumber("1" * 41)),
]


def found(serializer_class: Any, row: Any, body: dict[str, Any], **context: Any) -> str:
    """The values, or the problems, in their order and with their types."""
    context["view"] = SimpleNamespace(password_checks=[])
    serializer = serializer_class(row, data=body, partial=context.pop("partial"), context=context)
    try:
        valid = serializer.is_valid()
    except DomainError as problem:
        return f"{problem.code} {problem.message} {problem.details}"
    return repr(dict(serializer.validated_data if valid else serializer.errors))


def both_ways(serializer_class: Any, *arguments: Any, **context: Any) -> tuple[str, str]:
    """What the accelerated serializer finds, and what the reference does: DRF's own functions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UserManager, "lock_key_share", lambda manager, pk: pk != NOBODY)
        fast = found(accelerate(serializer_class), *arguments, **context)
        return fast, found(serializer_class, *arguments, **context)


@EVERY_SERIALIZER
def test_problems_of_each_field_are_those_of_drf(serializer_class: Any) -> None:
    principal = Principal(User(pk=CALLER, role=Role.ADMIN), ALL_SCOPES, "basic")
    for name in serializer_class().fields:
        for value in ANY:
            # The last version is the strictest.
            context = {"partial": False, "version": settings.API_VERSIONS[-1], "principal": principal}
            own, drf = both_ways(serializer_class, None, {name: value}, **context)
            assert own == drf


def context_of(**more: Any) -> dict[str, Any]:
    return {"version": settings.API_VERSIONS[0], "principal": Principal(User(pk=CALLER), ALL_SCOPES, "basic"), **more}


def refuse_three(attrs: dict[str, Any]) -> None:
    if attrs["qty"] == 3:
        raise DjangoValidationError("Not three.")


class Unlike(OrderSerializer):
    hidden = serializers.HiddenField(default="made here", write_only=True)

    class Meta(OrderSerializer.Meta):
        fields = (*OrderSerializer.Meta.fields, "hidden")
        validators = [refuse_three]

    def validate_item(self, value: str) -> str:
        if value == "Sand":
            raise DjangoValidationError("No %(what)s.", params={"what": "sand"})
        return value.upper()


@pytest.mark.parametrize(
    ("item", "qty", "is_valid"), [("Tea", 1, True), ("Sand", 1, False), ("Tea", 3, False), ("Sand", 0, False)]
)
def test_what_a_developer_declares_is_run_as_drf_runs_it(item: str, qty: int, is_valid: bool) -> None:
    body = {"item": item, "qty": qty, "hidden": "sent"}
    own, drf = both_ways(Unlike, None, body, partial=False, **context_of())
    assert own == drf
    assert ("made here" in own and "TEA" in own) is is_valid
