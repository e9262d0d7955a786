"""OAuth 2.0 access tokens."""

from rest_framework.request import Request

from config.api.errors import invalid_token
from config.api.principal import Principal


def resolve(token: str, request: Request) -> Principal:
    raise invalid_token()
