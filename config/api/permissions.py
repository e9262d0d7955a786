"""Scope first, then role: the two questions that every endpoint asks."""

from typing import Any, ClassVar

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from config.api.principal import Principal
from config.http.errors import Detail, DomainError, ErrorCode, forbidden


def require_scope(principal: Principal, scope: str) -> None:
    """Raises DomainError, an INSUFFICIENT_SCOPE, unless the credential allows `scope`."""
    if scope not in principal.scopes:
        raise insufficient_scope(scope)


def insufficient_scope(scope: str) -> DomainError:
    """The refusal with RFC 6750's challenge."""
    message = f"The credential lacks the scope {scope}."
    headers = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'}
    return DomainError(ErrorCode.INSUFFICIENT_SCOPE, message, [Detail("scope", message)], headers=headers)


class ResourcePermission(BasePermission):
    """Requires a credential, the scope that the view declares, and the app's own rule on a row.

    An app says what a role may do by overriding `may_create` and `may_change`; the links of a row ask the same.
    """

    refusal: ClassVar[str] = "Your role does not allow this."

    @staticmethod
    def may_create(principal: Principal) -> bool:
        return True

    @staticmethod
    def may_change(principal: Principal, row: Any) -> bool:
        """Whether the caller may replace, patch and delete a row that it sees. Nobody, unless an app says who."""
        return False

    def allows_anonymous(self, request: Request) -> bool:
        return False

    def has_permission(self, request: Request, view: Any) -> bool:
        principal: Principal | None = request.auth
        if principal is None:
            if self.allows_anonymous(request):
                return True
            raise DomainError(ErrorCode.UNAUTHENTICATED)
        scope = view.required_scope(request.method)
        if scope and request.method != "OPTIONS":
            require_scope(principal, scope)
        if request.method == "POST" and not self.may_create(principal):
            raise forbidden(self.refusal)
        return True

    def has_object_permission(self, request: Request, view: Any, obj: Any) -> bool:
        if request.method not in SAFE_METHODS and not self.may_change(request.auth, obj):
            raise forbidden(self.refusal, *view.get_body_fields(request))
        return True


class PasswordPermission(ResourcePermission):
    """A credential that is made from the password, whatever its scopes."""

    def has_permission(self, request: Request, view: Any) -> bool:
        allowed = super().has_permission(request, view)
        if request.method != "OPTIONS" and not request.auth.made_from_password:
            raise forbidden("This requires a password-based credential: JWT, Basic or session.", "credential")
        return allowed


class PublicPermission(ResourcePermission):
    """No credential needed."""

    def allows_anonymous(self, request: Request) -> bool:
        return True
