"""The FastAPI application of a service: problems, request ids, limits, health, metrics and offline documentation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.middleware import Middleware
from starlette.responses import HTMLResponse, JSONResponse, Response

from service_kit.context import RequestContextMiddleware
from service_kit.logging import get_logger
from service_kit.metrics import CONTENT_TYPE, Metrics, MetricsMiddleware
from service_kit.problem_handlers import (
    BodyLimitMiddleware,
    ErrorBoundaryMiddleware,
    install_problem_handlers,
    problem_response,
)
from service_kit.problems import NotFoundError, NotReadyError
from service_kit.settings import ServiceSettings
from service_kit.telemetry import fastapi_telemetry, tracer_provider
from service_kit.texts import Texts

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

logger = get_logger(__name__)
ReadinessCheck = Callable[[], Awaitable[None]]
Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
READINESS_TIMEOUT = 5.0
_STATIC = {"docs.css": "text/css", "docs.js": "text/javascript"}
_DOCS_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:"


def create_app(
    title: str,
    settings: ServiceSettings,
    routers: Sequence[APIRouter],
    *,
    readiness: Mapping[str, ReadinessCheck] | None = None,
    lifespan: Lifespan | None = None,
    metrics: Metrics | None = None,
    text_packages: Sequence[str] = (),
    version: str = "0.1.0",
    description: str = "",
    state: Mapping[str, Any] | None = None,
) -> FastAPI:
    """Build an application.

    Args:
        title: name of the service, e.g. ``content-store``.
        settings: limits and telemetry.
        routers: the service's routes, made with :class:`service_kit.routing.Router`; paths start with ``/v1``.
        readiness: named checks for ``/readyz``; a check fails by raising.
        lifespan: opens and closes what the service needs.
        metrics: the registry, when the service adds its own.
        text_packages: packages with a ``locale`` folder.
        version: of the service, shown in OpenAPI.
        description: shown in OpenAPI.
        state: values for ``app.state``, e.g. ``database`` and ``authenticator``; ``texts`` and ``metrics`` are set.
    """
    texts = Texts(text_packages)
    metrics = metrics or Metrics(title)
    provider = tracer_provider(title, settings.otel_endpoint)
    app = FastAPI(
        title=title,
        version=version,
        description=description,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(lifespan, provider),
        telemetry=fastapi_telemetry(provider),
        middleware=[
            # First is outermost: the context holds for the count and for the log line of an unexpected error.
            Middleware(RequestContextMiddleware),
            Middleware(MetricsMiddleware, metrics=metrics),
            Middleware(ErrorBoundaryMiddleware, texts=texts),
            Middleware(BodyLimitMiddleware, max_body_bytes=settings.max_body_bytes),
        ],
    )
    app.state.texts = texts
    app.state.metrics = metrics
    for name, value in (state or {}).items():
        setattr(app.state, name, value)
    install_problem_handlers(app, texts, settings.max_body_bytes)
    for router in routers:
        app.include_router(router)
    app.include_router(_operations_router(title, readiness or {}, metrics, texts))
    return app


def _lifespan(inner: Lifespan | None, provider: TracerProvider | None) -> Lifespan:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if provider is not None:
                stack.callback(provider.shutdown)
            if inner is not None:
                await stack.enter_async_context(inner(app))
            yield

    return lifespan


async def check_readiness(checks: Mapping[str, ReadinessCheck]) -> dict[str, str]:
    """Run the checks side by side: ``ok``, or the kind of failure, by name. Messages stay in the log."""

    async def one(name: str, check: ReadinessCheck) -> tuple[str, str]:
        try:
            async with asyncio.timeout(READINESS_TIMEOUT):
                await check()
        except Exception as error:  # any failure of a check is its answer
            logger.warning("not ready", check=name, exc_info=error)
            code = getattr(error, "code", None)
            return name, code if isinstance(code, str) else type(error).__name__
        return name, "ok"

    return dict(await asyncio.gather(*(one(name, check) for name, check in checks.items())))


def _operations_router(
    title: str, readiness: Mapping[str, ReadinessCheck], metrics: Metrics, texts: Texts
) -> APIRouter:
    """Health, metrics and documentation; none of it is part of the service's contract."""
    router = APIRouter(include_in_schema=False)

    @router.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @router.get("/readyz")
    async def readyz(request: Request) -> Response:
        results = await check_readiness(readiness)
        if any(result != "ok" for result in results.values()):
            return problem_response(request, NotReadyError(members={"checks": results}), texts)
        return JSONResponse({"status": "ok", "checks": results})

    @router.get("/metrics")
    async def scrape() -> Response:
        return Response(await metrics.render(), media_type=CONTENT_TYPE)

    @router.get("/docs")
    @router.get("/redoc")
    async def documentation() -> Response:
        page = (files("service_kit") / "static" / "docs.html").read_text(encoding="utf-8")
        return HTMLResponse(page.replace("{{title}}", title), headers={"Content-Security-Policy": _DOCS_POLICY})

    @router.get("/docs/{name}")
    async def documentation_file(name: str) -> Response:
        if name not in _STATIC:
            raise NotFoundError
        return Response((files("service_kit") / "static" / name).read_bytes(), media_type=_STATIC[name])

    return router
