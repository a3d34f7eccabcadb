"""The HTTP application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from service_kit.app import create_app
from service_kit.auth import (
    AssertionVerifier,
    Authenticator,
    CallerTable,
    KeySet,
    TrustedIssuer,
    UserTokenVerifier,
    load_trusted_keys,
)
from service_kit.client import RemoteError, RemoteServiceUnavailableError, remote_keys
from service_kit.logging import get_logger
from service_kit.metrics import Metrics
from service_kit.migrations import Migrations
from service_kit.problem_handlers import problem_response
from starlette.responses import Response

from agent_runtime.clients.sessions import SessionCheck
from agent_runtime.configurations import endpoints as configuration_endpoints
from agent_runtime.deps import Runtime
from agent_runtime.runs import endpoints as run_endpoints
from agent_runtime.settings import PACKAGE, SERVICE

logger = get_logger(__name__)
CALLERS = CallerTable({"chat-gateway": {"runs.start", "runs.read", "runs.decide"}})


def build_app(
    runtime: Runtime,
    *,
    trusted: dict[str, KeySet] | None = None,
    background: Sequence[Any] = (),
    metrics: Metrics | None = None,
) -> FastAPI:
    """The application over the parts of a process.

    Args:
        trusted: public keys of other services; from the settings' folder when none.
        background: coroutine functions that run beside the application (worker, relay).
        metrics: what the background counts, shown with the application's own.
    """
    settings = runtime.settings
    if trusted is None:
        trusted = load_trusted_keys(settings.trusted_keys_dir) if settings.trusted_keys_dir else {}
    app = create_app(
        SERVICE,
        settings,
        [run_endpoints.router, configuration_endpoints.router],
        readiness={
            "database": runtime.database.ping,
            "schema": schema_check(runtime),
            "store": runtime.store.client.ping,
        },
        lifespan=_lifespan(runtime, background),
        metrics=metrics,
        text_packages=["agent_runtime"],
        description="Runs of agents: start, watch, decide. What a run did is told step by step.",
        state={"runtime": runtime, "database": runtime.database, "authenticator": authenticator(runtime, trusted)},
    )

    async def on_remote(request: Request, error: Exception) -> Response:
        logger.warning("the store is away", reason=str(error))
        problem = RemoteServiceUnavailableError(service="content-store")
        return problem_response(request, problem, request.app.state.texts)

    app.add_exception_handler(RemoteError, on_remote)
    return app


def authenticator(runtime: Runtime, trusted: dict[str, KeySet]) -> Authenticator:
    """Services by their keys; users where the address of the token keys is set."""
    settings = runtime.settings
    users = None
    if settings.content_store_jwks_url is not None:
        issuer = TrustedIssuer(
            settings.token_issuer, settings.token_audience, remote_keys(settings.content_store_jwks_url)
        )
        users = UserTokenVerifier([issuer])
    return Authenticator(
        users=users,
        services=AssertionVerifier(SERVICE, trusted),
        callers=CALLERS,
        resolve_user=SessionCheck(runtime.store.client),
    )


def schema_check(runtime: Runtime) -> Any:
    """Readiness: the database is migrated to this version."""

    async def check() -> None:
        await migrations().check(runtime.database.engine)

    return check


def migrations() -> Migrations:
    """The revisions of this service."""
    return Migrations(PACKAGE)


def _lifespan(runtime: Runtime, background: Sequence[Any]) -> Any:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await runtime.start()
            stack.push_async_callback(runtime.stop)
            for work in background:
                await stack.enter_async_context(work())
            yield

    return lifespan
