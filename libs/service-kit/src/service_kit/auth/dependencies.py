"""FastAPI dependencies that name the caller. The application keeps its :class:`Authenticator` in ``app.state``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from service_kit.auth.assertions import AssertionVerifier, ServiceAssertion, is_service_assertion
from service_kit.auth.callers import CallerTable
from service_kit.auth.errors import TokenInvalidError, TokenMissingError
from service_kit.auth.tokens import UserToken, UserTokenVerifier


@dataclass(frozen=True)
class Actor:
    """Whoever a request is for.

    Attributes:
        user_uid: uid of the be_users row.
        service: the service that calls on the user's behalf, or ``None`` when the user calls.
        token: the user's access token, or ``None``.
    """

    user_uid: int
    service: str | None = None
    token: UserToken | None = None


class Authenticator:
    """Everything a service needs to know its callers.

    Args:
        users: verifies access tokens, or ``None`` where users do not call.
        services: verifies assertions, or ``None`` where services do not call.
        callers: what each service may call.
        resolve_user: maps a verified token to a uid and refuses logged-out sessions and disabled users by raising
            :class:`TokenInvalidError`; without it the token's own uid counts.
    """

    def __init__(
        self,
        *,
        users: UserTokenVerifier | None = None,
        services: AssertionVerifier | None = None,
        callers: CallerTable | None = None,
        resolve_user: Callable[[UserToken], Awaitable[int]] | None = None,
    ) -> None:
        self._users = users
        self._services = services
        self._callers = callers or CallerTable({})
        self._resolve_user = resolve_user

    async def user(self, token: str) -> Actor:
        """The user of an access token.

        Raises:
            AuthenticationError: any reason not to believe it.
        """
        if self._users is None:
            raise TokenInvalidError
        verified = await self._users.verify(token)
        uid = await self._resolve_user(verified) if self._resolve_user else verified.user_uid
        if uid is None:
            raise TokenInvalidError
        return Actor(user_uid=uid, token=verified)

    async def service(self, token: str, operation: str) -> ServiceAssertion:
        """The service of an assertion, allowed to call the operation.

        Raises:
            AuthenticationError: any reason not to believe it.
            CallerNotAllowedError: the table does not allow it.
        """
        if self._services is None:
            raise TokenInvalidError
        assertion = await self._services.verify(token)
        self._callers.check(assertion.service, operation)
        return assertion


_user_scheme = HTTPBearer(auto_error=False, scheme_name="userToken", description="Access token of a user")
_service_scheme = HTTPBearer(auto_error=False, scheme_name="serviceAssertion", description="Assertion of a service")


UserCredentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_user_scheme)]
ServiceCredentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_service_scheme)]


def _authenticator(request: Request) -> Authenticator:
    authenticator = request.app.state.authenticator
    if not isinstance(authenticator, Authenticator):
        raise TypeError("app.state.authenticator is not an Authenticator")
    return authenticator


def _token(credentials: HTTPAuthorizationCredentials | None) -> str:
    if credentials is None or not credentials.credentials:
        raise TokenMissingError
    return credentials.credentials


def require_user() -> Any:
    """``Depends`` marker: the :class:`Actor` of a user's access token; an assertion is refused."""

    async def dependency(request: Request, credentials: UserCredentials) -> Actor:
        return await _authenticator(request).user(_token(credentials))

    return Depends(dependency)


def require_service(operation: str) -> Any:
    """``Depends`` marker: the :class:`ServiceAssertion` of a service that may call the operation."""

    async def dependency(request: Request, credentials: ServiceCredentials) -> ServiceAssertion:
        return await _authenticator(request).service(_token(credentials), operation)

    return Depends(dependency)


def require_actor(operation: str) -> Any:
    """``Depends`` marker: the :class:`Actor`, a user in person or a service that may call on a user's behalf."""

    async def dependency(
        request: Request,
        as_user: UserCredentials,
        _as_service: ServiceCredentials,
    ) -> Actor:
        token = _token(as_user)
        if not is_service_assertion(token):
            return await _authenticator(request).user(token)
        assertion = await _authenticator(request).service(token, operation)
        if assertion.user_uid is None:
            raise TokenInvalidError
        return Actor(user_uid=assertion.user_uid, service=assertion.service)

    return Depends(dependency)
