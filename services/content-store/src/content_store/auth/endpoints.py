"""Routes of logins."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request, Response
from service_kit.auth import (
    Actor,
    CallerNotAllowedError,
    ServiceAssertion,
    TokenExpiredError,
    TokenInvalidError,
    TokenMissingError,
    require_actor,
    require_service,
    require_user,
)
from service_kit.problems import problem_responses
from service_kit.routing import Router

from content_store.auth.errors import LoginFailedError, RefreshFailedError, TooManyLoginsError
from content_store.auth.schemas import KeySetView, LoginRequest, RefreshRequest, SessionView, TokensView, UserView
from content_store.auth.service import AuthService
from content_store.deps import Services, services

router = Router(prefix="/v1/auth", tags=["auth"])
ServicesDependency = Annotated[Services, Depends(services)]


def _auth(found: ServicesDependency) -> AuthService:
    return found.auth


AuthDependency = Annotated[AuthService, Depends(_auth)]
_TOKEN_PROBLEMS = (TokenMissingError, TokenInvalidError, TokenExpiredError)


@router.post("/login", responses=problem_responses(LoginFailedError, TooManyLoginsError, body=True))
async def login(body: LoginRequest, request: Request, auth: AuthDependency) -> TokensView:
    """Begin a session with user name and password. Five failures a minute, and there is a pause."""
    address = request.client.host if request.client else ""
    return await auth.login(body.username, body.password, address)


@router.post("/refresh", responses=problem_responses(RefreshFailedError, body=True))
async def refresh(body: RefreshRequest, auth: AuthDependency) -> TokensView:
    """Exchange a refresh token, once."""
    return await auth.refresh(body.refresh_token)


@router.post(
    "/logout",
    status_code=204,
    response_class=Response,
    responses=problem_responses(*_TOKEN_PROBLEMS),
)
async def logout(auth: AuthDependency, actor: Annotated[Actor, require_user()]) -> None:
    """End the session of the access token."""
    if actor.token is not None and actor.token.session_id is not None:
        await auth.logout(actor.token.session_id)


@router.get("/jwks")
async def jwks(found: ServicesDependency) -> KeySetView:
    """Public keys of access tokens."""
    return KeySetView(keys=[found.signing_key.public_jwk()])


@router.get("/me", responses=problem_responses(*_TOKEN_PROBLEMS, CallerNotAllowedError))
async def me(auth: AuthDependency, actor: Annotated[Actor, require_actor("records.read")]) -> UserView:
    """The user of the access token, or the one a service speaks for."""
    user = await auth.user(actor.user_uid)
    if user is None:
        raise TokenInvalidError
    return user


@router.get("/sessions/{sid}", responses=problem_responses(*_TOKEN_PROBLEMS, CallerNotAllowedError))
async def session(
    sid: UUID, auth: AuthDependency, _service: Annotated[ServiceAssertion, require_service("auth.session")]
) -> SessionView:
    """Whether the session lets its user in now; asked by services that accept the user's access tokens."""
    uid = await auth.active_user(sid)
    return SessionView(active=uid is not None, user_uid=uid)
