"""The HTTP application of the gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from uuid import UUID

from fastapi import FastAPI
from service_kit.app import create_app
from service_kit.auth import Authenticator, KeySet, TrustedIssuer, UserTokenVerifier
from service_kit.auth.remote import RemoteKeySource
from service_kit.auth.tokens import KeySource
from service_kit.client import RemoteError, RemoteServiceUnavailableError, remote_keys
from service_kit.database import Database
from service_kit.migrations import Migrations

from chat_gateway.access.current_user import LoginSessions
from chat_gateway.access.endpoints import router as access_router
from chat_gateway.approvals.endpoints import router as approvals_router
from chat_gateway.changes.endpoints import router as changes_router
from chat_gateway.conversations.endpoints import router as conversations_router
from chat_gateway.health import database_ready as check_database
from chat_gateway.services import Remotes, build_services, open_database, open_remotes
from chat_gateway.settings import PACKAGE, SERVICE, GatewaySettings
from chat_gateway.stream.endpoints import router as stream_router
from chat_gateway.stream.service import StreamService, StreamTimes

DESCRIPTION = (
    "For editors: conversations with the assistant, the card of what it wants to do, and the list of what it changed."
)
KEY_FETCH_INTERVAL = 2.0
ROUTERS = (access_router, conversations_router, approvals_router, changes_router, stream_router)


def build_app(settings: GatewaySettings) -> FastAPI:
    """The application; it opens its connections when it starts."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            database = open_database(settings)
            stack.push_async_callback(database.close)
            await Migrations(PACKAGE).check(database.engine)
            remotes = await stack.enter_async_context(open_remotes(settings))
            await stack.enter_async_context(running(app, settings, database, remotes))
            yield

    async def database_ready() -> None:
        await check_database(app.state.services.database)

    app = create_app(
        SERVICE,
        settings,
        ROUTERS,
        readiness={"database": database_ready},
        lifespan=lifespan,
        text_packages=[PACKAGE],
        description=DESCRIPTION,
    )
    return app


@asynccontextmanager
async def running(app: FastAPI, settings: GatewaySettings, database: Database, remotes: Remotes) -> AsyncIterator[None]:
    """Give the application what its routes need, and receive wake-ups while the block runs."""
    services = build_services(settings, database, remotes)

    async def ask(session_id: UUID) -> bool:
        try:
            return await remotes.store.session_active(session_id)
        except RemoteError as error:
            raise RemoteServiceUnavailableError(service="content-store") from error

    sessions = LoginSessions(ask, settings.session_cache)
    issuers = _issuers(settings, _store_keys(remotes))
    app.state.services = services
    app.state.database = database
    app.state.authenticator = Authenticator(
        users=UserTokenVerifier(issuers, timedelta(seconds=settings.token_leeway)), resolve_user=sessions.resolve
    )
    times = StreamTimes(settings.stream_poll, settings.stream_heartbeat, settings.stream_lifetime)
    app.state.streams = StreamService(database, services.wakeup, sessions, times, settings.stream_connections)
    listening = asyncio.create_task(services.wakeup.listen())
    try:
        yield
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


def _store_keys(remotes: Remotes) -> KeySource:
    """Keys of the content-store, which issues the tokens; fetched when first needed."""

    async def fetch() -> KeySet:
        return KeySet.from_jwks(await remotes.store.jwks())

    return RemoteKeySource(fetch, (RemoteError, ValueError), min_interval=KEY_FETCH_INTERVAL)


def _issuers(settings: GatewaySettings, keys: KeySource) -> list[TrustedIssuer]:
    issuers = [TrustedIssuer(settings.token_issuer, settings.token_audience, keys)]
    if settings.oidc_issuer and settings.oidc_audience:
        issuers.append(
            TrustedIssuer.oidc(
                settings.oidc_issuer, settings.oidc_audience, _oidc_keys(settings), settings.oidc_user_claim
            )
        )
    return issuers


def _oidc_keys(settings: GatewaySettings) -> KeySource:
    if settings.oidc_jwks_url:
        return remote_keys(settings.oidc_jwks_url)
    if settings.oidc_jwks_file is None:
        raise ValueError("an OIDC issuer needs CHAT_GATEWAY_OIDC_JWKS_URL or CHAT_GATEWAY_OIDC_JWKS_FILE")
    fixed = KeySet.from_jwks(json.loads(settings.oidc_jwks_file.read_text(encoding="utf-8")))

    async def source(_kid: str) -> KeySet:
        return fixed

    return source
