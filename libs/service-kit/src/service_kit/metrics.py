"""Prometheus metrics of one application, in a registry of its own so that two applications fit in one process."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service_kit.logging import get_logger

logger = get_logger(__name__)
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
Refresh = Callable[[], Awaitable[None]]
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The registry, the HTTP metrics, and gauges that are computed when somebody looks."""

    def __init__(self, service: str) -> None:
        self.registry = CollectorRegistry()
        self._refreshes: list[Refresh] = []
        self.requests = Counter(
            "remit_http_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self.duration = Histogram(
            "remit_http_request_duration_seconds",
            "Time until the answer was sent",
            ["method", "route"],
            registry=self.registry,
            buckets=_BUCKETS,
        )
        Gauge("remit_service_info", "Which service this is", ["service"], registry=self.registry).labels(service).set(1)

    def counter(self, name: str, help_text: str, labels: tuple[str, ...] = ()) -> Counter:
        """A new counter."""
        return Counter(name, help_text, labels, registry=self.registry)

    def gauge(self, name: str, help_text: str, labels: tuple[str, ...] = ()) -> Gauge:
        """A new gauge."""
        return Gauge(name, help_text, labels, registry=self.registry)

    def histogram(self, name: str, help_text: str, labels: tuple[str, ...] = ()) -> Histogram:
        """A new histogram of seconds."""
        return Histogram(name, help_text, labels, registry=self.registry, buckets=_BUCKETS)

    def on_scrape(self, refresh: Refresh) -> None:
        """Call this before every answer of ``/metrics``, to set gauges that cost a query."""
        self._refreshes.append(refresh)

    async def render(self) -> bytes:
        """The metrics as Prometheus text; a gauge that cannot be refreshed keeps its last value and is logged."""
        for refresh in self._refreshes:
            try:
                await refresh()
            except Exception as error:  # one dead gauge must not hide all other metrics
                logger.warning("metric not refreshed", exc_info=error)
        return generate_latest(self.registry)


class MetricsMiddleware:
    """Counts requests by route template, never by path, so the number of series stays bounded."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 500
        started = time.perf_counter()

        async def watched_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watched_send)
        finally:
            route = getattr(scope.get("route"), "path", None) or "none"
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self.metrics.requests.labels(method, route, str(status)).inc()
            self.metrics.duration.labels(method, route).observe(time.perf_counter() - started)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
