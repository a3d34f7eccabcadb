"""Turns every error of a FastAPI application into a problem document; nothing of a trace leaves the process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service_kit.context import current_request_id
from service_kit.logging import get_logger
from service_kit.outages import DatabaseUnavailableError, is_database_outage
from service_kit.problems import (
    MEDIA_TYPE,
    BadRequestError,
    BodyTooLargeError,
    FieldProblem,
    InternalError,
    MethodNotAllowedError,
    NotFoundError,
    ProblemError,
    UnreadableBodyError,
    ValidationProblem,
)
from service_kit.texts import Texts

logger = get_logger(__name__)
MAX_FIELD_PROBLEMS = 50


def install_problem_handlers(app: FastAPI, texts: Texts, max_body_bytes: int | None = None) -> None:
    """Register the handlers; ``request.state.language`` may name the user's language."""

    def respond(request: Request, problem: ProblemError) -> Response:
        return problem_response(request, problem, texts)

    async def on_problem(request: Request, error: Exception) -> Response:
        problem = error if isinstance(error, ProblemError) else InternalError()
        if problem.status >= 500:
            logger.error("problem", code=problem.code, params=_loggable(problem.params), exc_info=error)
        return respond(request, problem)

    async def on_invalid(request: Request, error: Exception) -> Response:
        found = error.errors() if isinstance(error, RequestValidationError) else []
        if any(item["type"] == "json_invalid" for item in found):
            return respond(request, UnreadableBodyError())
        language = texts.negotiate(request.headers.get("accept-language"), _user_language(request))
        errors = [_field_problem(item, texts, language) for item in found[:MAX_FIELD_PROBLEMS]]
        return respond(request, ValidationProblem(members={"errors": errors}))

    async def on_http(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = (error.headers if isinstance(error, HTTPException) else None) or {}
        return respond(request, _http_problem(status, headers, max_body_bytes))

    app.add_exception_handler(ProblemError, on_problem)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)


class ErrorBoundaryMiddleware:
    """Logs what nobody expected and answers it: ``database_unavailable`` while that is away, else ``internal_error``.

    Stands inside the request context, so the id is known.

    When a part of the response is already out, the error goes on to the server, which closes the connection: a
    truncated answer must not look like a whole one.
    """

    def __init__(self, app: ASGIApp, texts: Texts) -> None:
        self.app = app
        self.texts = texts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watched_send)
        except Exception as error:  # the boundary: everything is logged and nothing is swallowed
            away = is_database_outage(error)
            what = "the database is away" if away else "unexpected error"
            logger.error(what, path=scope["path"], method=scope["method"], exc_info=error)
            if started:
                raise
            problem = DatabaseUnavailableError(headers={"Retry-After": "1"}) if away else InternalError()
            response = problem_response(Request(scope), problem, self.texts)
            await response(scope, receive, send)


class BodyLimitMiddleware:
    """Refuses to read more of a body than the limit; reading past it raises an HTTP 413 inside the application."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self.app = app
        self.max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        announced = int(length) if length.isascii() and length.isdigit() else 0
        seen = 0

        async def limited_receive() -> Message:
            nonlocal seen
            if announced > self.max_body_bytes:
                raise HTTPException(413)
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.max_body_bytes:
                raise HTTPException(413)
            return message

        await self.app(scope, limited_receive, send)


def problem_response(request: Request, problem: ProblemError, texts: Texts) -> Response:
    """The problem as a response in the reader's language."""
    language = texts.negotiate(request.headers.get("accept-language"), _user_language(request))
    body = problem.document(texts, language, instance=request.url.path, request_id=current_request_id())
    headers = {**problem.headers, "Content-Language": language, "Vary": "Accept-Language", "Cache-Control": "no-store"}
    # ASCII escapes: a path or parameter may hold a lone surrogate, which no UTF-8 encoder accepts.
    content = json.dumps(body, default=str).encode("ascii")
    return Response(content, status_code=problem.status, media_type=MEDIA_TYPE, headers=headers)


def _user_language(request: Request) -> str | None:
    language = getattr(request.state, "language", None)
    return language if isinstance(language, str) else None


def _http_problem(status: int, headers: Mapping[str, str], max_body_bytes: int | None) -> ProblemError:
    """The problem for an error the framework raises by itself."""
    if status == 413:
        return BodyTooLargeError(limit=max_body_bytes or 0, headers=headers)
    known: dict[int, type[ProblemError]] = {
        400: UnreadableBodyError,
        404: NotFoundError,
        405: MethodNotAllowedError,
        500: InternalError,
    }
    if status in known:
        return known[status](headers=headers)
    return _other_problem(status)(headers=headers)


def _other_problem(http_status: int) -> type[ProblemError]:
    """A problem named after the HTTP status, for statuses the framework uses and we have no word for."""
    try:
        phrase = HTTPStatus(http_status).phrase
    except ValueError:
        return InternalError if http_status >= 500 else BadRequestError

    class HttpProblem(ProblemError):
        """Named by its HTTP status."""

        code = phrase.lower().replace(" ", "_").replace("-", "_")
        status = http_status
        title = phrase

    return HttpProblem


def _field_problem(item: Mapping[str, Any], texts: Texts, language: str) -> dict[str, Any]:
    """One validation error without the value that caused it: values may be secrets."""
    code = str(item["type"])
    detail = texts.text(_FIELD_TEXTS[code], language) if code in _FIELD_TEXTS else str(item["msg"])
    return FieldProblem(pointer=json_pointer(item["loc"]), code=code, detail=detail).model_dump()


_FIELD_TEXTS = {
    "missing": "This value is required.",
    "extra_forbidden": "This key is not known.",
    "string_type": "A text is expected.",
    "int_type": "A whole number is expected.",
    "int_parsing": "A whole number is expected.",
    "bool_type": "True or false is expected.",
    "list_type": "A list is expected.",
    "uuid_parsing": "An id (UUID) is expected.",
}


def json_pointer(parts: Sequence[str | int]) -> str:
    """A JSON pointer (RFC 6901) of the parts of a location."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _loggable(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value)[:200] for name, value in params.items()}
