"""What a deferred insert leaves to the reference, and what it adds for nobody."""

from decimal import Decimal

import pytest
from django.db import InternalError, connection
from django.db.models import DateField, DateTimeField, Field, Model, QuerySet, signals
from django.urls import get_resolver
from psycopg.errors import ReadOnlySqlTransaction

from config.api.principal import ALL_SCOPES, Principal
from config.api.representation.serializers import ResourceSerializer
from config.api.viewsets import ResourceViewSet
from config.api.writing.idempotency import IdempotencyKey
from config.fastpath import inserts
from config.fastpath.http import FastResponse
from config.fastpath.views import adds_alone
from config.models import IdempotencyRecord
from orders.models import Order
from payments.models import Payment
from tests.fastpath.test_viewsets import find_views
from users.models import User

VIEWS = {view.cls for view in find_views(get_resolver().url_patterns) if view.actions.get("post") == "create"}
ADDED = sorted(filter(adds_alone, VIEWS), key=lambda each: each.__name__)


@pytest.mark.parametrize("view_class", ADDED, ids=lambda each: each.__name__)
def test_to_add_such_a_row_is_one_insert_and_nothing_else(view_class):
    """No hook of a model, a manager, a field or a serializer, and no receiver, is gone around."""
    model, serializer_class = view_class.queryset.model, view_class.serializer_class
    names = ("save", "validate", "to_internal_value", "run_validation", "is_valid", "get_fields")
    assert [name for name in names if getattr(serializer_class, name) is not getattr(ResourceSerializer, name)] == []
    assert [name for name in serializer_class().fields if hasattr(serializer_class, f"validate_{name}")] == []
    assert view_class.get_address_values is ResourceViewSet.get_address_values
    assert [name for name in ("save", "save_base") if getattr(model, name) is not getattr(Model, name)] == []
    assert type(model._default_manager.all()).create is QuerySet.create
    assert not any(signal.has_listeners(model) for signal in (signals.pre_save, signals.post_save))
    stock = {each.pre_save for each in (Field, DateField, DateTimeField)}
    given = [field for field in model._meta.local_concrete_fields if field not in model._meta.db_returning_fields]
    assert {type(field).pre_save for field in given} <= stock
    assert {field.attname for field in given} <= serializer_class().fields.keys()


@pytest.mark.parametrize("part", ["nextval", "guard AS"], ids=["reserve", "commit"])
def test_row_that_a_standby_refuses_is_added_by_the_reference(user, part):
    refused = []

    def refuse(execute, sql, *arguments):
        if part in sql and not refused:
            refused.append(sql)
            raise InternalError from ReadOnlySqlTransaction()
        return execute(sql, *arguments)

    with connection.execute_wrapper(refuse):
        assert user.post("/orders", {"item": "Tea", "qty": 2}).status == 201
    assert (len(refused), Order.objects.count()) == (1, 1)


@pytest.fixture
def key(make_user):
    return IdempotencyKey(make_user().pk, "POST /payments", "k", b"fingerprint")


def reserve_payment(key):
    return inserts.reserve(Payment, {"user_id": key.user_id, "amount": Decimal(1)}, "default")


def commit_with_key(pending, key):
    response = FastResponse({"id": pending.row.pk}, 201, headers={"Location": f"/payments/{pending.row.pk}"})
    return pending.commit(inserts.get_key_guard(key, response, pending.row))


def commit_with_user(pending, key):
    principal = Principal(User(pk=key.user_id), ALL_SCOPES, "jwt")
    return pending.commit(inserts.get_user_guard(principal))


@pytest.mark.parametrize("commit", [commit_with_key, commit_with_user])
def test_nothing_is_added_for_a_user_that_was_removed(transactional_db, key, elsewhere, commit):
    pending = reserve_payment(key)
    elsewhere.execute(
        "UPDATE users_user SET removed_at = now(), name = '', email = '', password = '', status = 'inactive'"
        " WHERE id = %s",
        [key.user_id],
    )
    elsewhere.commit()
    assert not commit(pending, key)
    assert (Payment.objects.count(), IdempotencyRecord.objects.count()) == (0, 0)
