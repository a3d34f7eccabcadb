"""Login, passed through to the content-store, which owns users and sessions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response
from service_kit.auth import TokenInvalidError, TokenMissingError
from service_kit.client import RemoteError, RemoteProblem, RemoteServiceUnavailableError
from service_kit.problems import ProblemError, problem_responses
from service_kit.routing import Router

from chat_gateway.access.schemas import LoggedInUser, LoginRequest, RefreshRequest, Tokens
from chat_gateway.clients.errors import forwarded, unavailable
from chat_gateway.deps import LoginClientDependency

router = Router(prefix="/v1/auth", tags=["access"])


class LoginFailedError(ProblemError):
    """Name or password are wrong."""

    code = "login_failed"
    status = 401
    title = "Name or password are wrong"


class TooManyLoginsError(ProblemError):
    """Too many failed logins a minute."""

    code = "too_many_logins"
    status = 429
    title = "Too many failed logins"


async def _authorization(authorization: Annotated[str | None, Header(include_in_schema=False)] = None) -> str:
    if not authorization:
        raise TokenMissingError
    return authorization


Authorization = Annotated[str, Depends(_authorization)]


@router.post(
    "/login",
    summary="Log in",
    responses=problem_responses(LoginFailedError, TooManyLoginsError, RemoteServiceUnavailableError, body=True),
)
async def login(body: LoginRequest, request: Request, store: LoginClientDependency) -> Tokens:
    """Log in with name and password; the answer's tokens are the content-store's."""
    return Tokens.model_validate(await _forward(store, request, "/v1/auth/login", body.model_dump(mode="json")))


@router.post(
    "/refresh",
    summary="Renew the access token",
    responses=problem_responses(TokenInvalidError, RemoteServiceUnavailableError, body=True),
)
async def refresh(body: RefreshRequest, request: Request, store: LoginClientDependency) -> Tokens:
    """Exchange a refresh token for new tokens."""
    return Tokens.model_validate(await _forward(store, request, "/v1/auth/refresh", body.model_dump(mode="json")))


@router.post(
    "/logout",
    summary="Log out",
    status_code=204,
    responses=problem_responses(TokenInvalidError, RemoteServiceUnavailableError),
)
async def logout(request: Request, store: LoginClientDependency, authorization: Authorization) -> Response:
    """End the login session; its tokens stop within seconds."""
    await _forward(store, request, "/v1/auth/logout", None, authorization)
    return Response(status_code=204)


@router.get("/me", summary="Who am I", responses=problem_responses(TokenInvalidError, RemoteServiceUnavailableError))
async def me(request: Request, store: LoginClientDependency, authorization: Authorization) -> LoggedInUser:
    """The user of the access token."""
    return LoggedInUser.model_validate(await _forward(store, request, "/v1/auth/me", None, authorization, method="GET"))


async def _forward(
    store: LoginClientDependency,
    request: Request,
    path: str,
    body: Any,
    authorization: str | None = None,
    *,
    method: str = "POST",
) -> Any:
    address = request.client.host if request.client is not None else None
    try:
        _, answer = await store.forward(method, path, body=body, authorization=authorization, address=address)
    except RemoteProblem as problem:
        if problem.status >= 500:
            raise unavailable(problem) from problem
        raise forwarded(problem) from problem
    except RemoteError as error:
        raise unavailable(error) from error
    return answer
