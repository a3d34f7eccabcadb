"""The application of the content-store: its routes, and when it is ready."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import uvicorn
from fastapi import APIRouter, FastAPI
from service_kit.app import create_app
from service_kit.logging import configure_logging
from service_kit.metrics import Metrics

from content_store.assembly import SERVICE, StoreParts, open_services, start_background
from content_store.auth import endpoints as auth_endpoints
from content_store.calls import endpoints as call_endpoints
from content_store.datahandler.hooks import load_hooks
from content_store.identity import Identity
from content_store.reads import endpoints as read_endpoints
from content_store.reads import history_endpoints
from content_store.schema.loader import load_schema
from content_store.schema.state import check_schema
from content_store.settings import StoreSettings
from content_store.sites import load_sites
from content_store.visibility import endpoints as visibility_endpoints
from content_store.workspaces import endpoints as workspace_endpoints
from content_store.writing import endpoints as writing_endpoints


def routers() -> list[APIRouter]:
    """All routes of the service."""
    return [
        auth_endpoints.router,
        read_endpoints.router,
        history_endpoints.router,
        workspace_endpoints.router,
        visibility_endpoints.router,
        writing_endpoints.router,
        call_endpoints.router,
    ]


def build_app(parts: StoreParts) -> FastAPI:
    """The application; nothing is opened before it starts.

    Raises:
        KeyMaterialError, SettingsError, SchemaFileError: the settings, keys or files cannot be used.
    """
    settings = parts.settings
    schema = parts.schema or load_schema(settings.schema_folders)
    sites = list(parts.sites) if parts.sites is not None else load_sites(settings.site_folders)
    hooks = list(parts.hooks) if parts.hooks is not None else load_hooks()
    metrics = Metrics(SERVICE)
    identity = Identity(settings, parts.auth)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            services = await open_services(stack, app, parts, schema, sites, hooks, identity)
            if parts.background:
                await start_background(stack, parts, services, metrics)
            yield

    async def database() -> None:
        await app.state.services.reads.fetchval("SELECT 1")

    async def tables() -> None:
        await check_schema(app.state.services.reads, schema)

    app = create_app(
        SERVICE,
        settings,
        routers(),
        readiness={"database": database, "schema": tables},
        lifespan=lifespan,
        metrics=metrics,
        text_packages=("content_store",),
        description="Records, rights and calls of a Remit site.",
    )
    return app


def serve(settings: StoreSettings) -> None:
    """Run the service until it is told to stop."""
    configure_logging(SERVICE, settings.log_level, settings.log_format)
    uvicorn.run(
        build_app(StoreParts(settings)),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        # The gateway in front says for whom it asks; failed logins are counted by that address.
        proxy_headers=True,
    )
