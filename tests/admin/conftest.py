from typing import Any

import pytest
from django.test import Client

from tests.admin.test_pages import signed_in
from users.models import User


@pytest.fixture
def chief(make_user: Any) -> User:
    return make_user("admin", name="Chief", email="chief@example.com")


@pytest.fixture
def pages(chief: User) -> Client:
    return signed_in(chief)
