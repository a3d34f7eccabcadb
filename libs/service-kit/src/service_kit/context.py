"""The request a piece of work belongs to: its id, and the trace it continues."""

from __future__ import annotations

import re
from contextvars import ContextVar

from opentelemetry import context as otel_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from service_kit.ids import uuid7

REQUEST_ID_HEADER = "X-Request-Id"
_ACCEPTED = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_request_id: ContextVar[str | None] = ContextVar("remit_request_id", default=None)
_propagator = TraceContextTextMapPropagator()


def current_request_id() -> str | None:
    """The id of the request being served, or ``None`` outside of one."""
    return _request_id.get()


def propagation_headers() -> dict[str, str]:
    """Headers that carry trace and request id to another service: ``traceparent``, ``tracestate``, ``X-Request-Id``."""
    headers: dict[str, str] = {}
    _propagator.inject(headers)
    if (request_id := current_request_id()) is not None:
        headers[REQUEST_ID_HEADER] = request_id
    return headers


def current_traceparent() -> str | None:
    """The W3C ``traceparent`` of the present context, or ``None``."""
    return propagation_headers().get("traceparent")


class RequestContextMiddleware:
    """Takes or makes ``X-Request-Id``, binds it to the logs, answers with it, and continues the caller's trace.

    An id that is no short plain token is replaced: it goes into logs and headers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID_HEADER, "")
        request_id = given if _ACCEPTED.fullmatch(given) else str(uuid7())

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = request_id
            await send(message)

        id_token = _request_id.set(request_id)
        # FastAPI's own tracing has made a span already where it is on; then that span is the context to keep.
        trace_token = None
        if not otel_context.get_current():
            trace_token = otel_context.attach(_propagator.extract(dict(headers)))
        try:
            with bound_contextvars(request_id=request_id):
                await self.app(scope, receive, send_with_id)
        finally:
            if trace_token is not None:
                otel_context.detach(trace_token)
            _request_id.reset(id_token)
