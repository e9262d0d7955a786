"""What the OpenAPI document reads from a view."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission

from config.api.versions.table import Version
from config.http.errors import ErrorCode


class DescribedView(Protocol):
    """A view of this service, as the generator instantiates it for one operation of one version."""

    described_version: Version
    authentication_classes: Sequence[type[BaseAuthentication]]
    permission_classes: Sequence[type[BasePermission]]
    envelope_known: ClassVar[bool]
    names_version: ClassVar[bool]
    own_errors: ClassVar[Mapping[str, Sequence[ErrorCode]]]

    def required_scope(self, method: str) -> str | None: ...
