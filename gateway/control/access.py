"""Who may change what through the admin API: bearer tokens of the policy's operators, and their roles.

Owns the comparison of tokens (by SHA-256, in constant time over all operators), the order of roles, and the rule for
reading: everything under ``/api/`` is for the policy's operators, whatever their role. Without operators in the policy
anybody who reaches the admin address may read, and nobody can change anything.
"""

import hashlib
import hmac
from collections.abc import Iterable
from enum import IntEnum

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from gateway.control.answers import refusal
from gateway.errors import ApiError
from gateway.model.proving import Operator


class Role(IntEnum):
    """Each role may do what the ones below it may."""

    VIEWER = 0
    OPERATOR = 1
    APPROVER = 2


_ROLES = {"viewer": Role.VIEWER, "operator": Role.OPERATOR, "approver": Role.APPROVER}


class Access:
    """The operators of the policy in force."""

    def __init__(self) -> None:
        self._operators: tuple[Operator, ...] = ()

    def configure(self, operators: Iterable[Operator]) -> None:
        """The policy's operators."""
        self._operators = tuple(operators)

    def permit_reading(self, authorization: str | None) -> None:
        """Raises ``ApiError`` like ``require`` for who is none of the operators, if there are any."""
        if self._operators:
            self.require(authorization, Role.VIEWER)

    def require(self, authorization: str | None, role: Role) -> str:
        """The name of the person whose token this is. Raises ``ApiError`` 401 or 403 with the mend."""
        if not self._operators:
            message = "The policy names no operators. Add them under `operators` to act here."
            raise ApiError(403, "no_operators", message)
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise ApiError(
                401,
                "missing_token",
                "Send an operator's token: Authorization: Bearer TOKEN.",
                headers=(("WWW-Authenticate", "Bearer"),),
            )
        digest = hashlib.sha256(token.strip().encode()).digest()
        found = None
        for operator in self._operators:  # all of them, so that time tells nothing
            if hmac.compare_digest(digest, operator.token):
                found = operator
        if found is None:
            raise ApiError(401, "unknown_token", "This token belongs to no operator of the policy.")
        if _ROLES[found.role] < role:
            needed = role.name.lower()
            raise ApiError(403, "role_too_low", f"{found.name} is {found.role}; this needs the role {needed}.")
        return found.name


def reading_guard(access: Access) -> Middleware:
    """A middleware that lets operators alone read under ``/api/``. Commands ask for their own roles."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith("/api/") and request.method in ("GET", "HEAD"):
            try:
                access.permit_reading(request.headers.get("Authorization"))
            except ApiError as error:
                return refusal(error)
        return await handler(request)

    return guard
