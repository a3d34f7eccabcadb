"""The router of the services: JSON bodies are read strictly."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from service_kit.problems import UnreadableBodyError

# Nothing anybody sends is nested so deep, and serializers give up at 255.
MAX_DEPTH: Final = 100


def _no_constant(name: str) -> Any:
    raise UnreadableBodyError


def parse_json(body: bytes) -> Any:
    """JSON as RFC 8259 has it: UTF-8, no ``NaN`` or ``Infinity``, no unpaired surrogates, no endless nesting.

    Python's reader accepts the first three, and each would fail later, in the database or in the answer.

    Raises:
        UnreadableBodyError: for anything else.
    """
    try:
        text = body.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant)
        if text.count("[") + text.count("{") > MAX_DEPTH and _deeper_than(value, MAX_DEPTH):
            raise UnreadableBodyError
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise UnreadableBodyError from error
    return value


def _deeper_than(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return any(isinstance(inner, dict | list) for inner in level)


class StrictJsonRequest(Request):
    """A request whose body is read by :func:`parse_json`."""

    async def json(self) -> Any:
        """The body as JSON values."""
        if not hasattr(self, "_json"):
            try:
                self._json = parse_json(await self.body())
            except UnreadableBodyError as error:
                # FastAPI passes this error on as an invalid body; every other kind it would rename.
                raise json.JSONDecodeError("not readable", "", 0) from error
        return self._json


class StrictJsonRoute(APIRoute):
    """A route that reads its body strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request of our kind."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictJsonRequest(request.scope, request.receive))

        return strict


class Router(APIRouter):
    """An ``APIRouter`` whose routes read JSON strictly; services use it for every route with a body."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("route_class", StrictJsonRoute)
        super().__init__(*args, **kwargs)
