"""Logs as one JSON object a line, with the ids of request, run and call that are bound to the current context."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Literal, TextIO
from uuid import UUID

import structlog
from opentelemetry import trace
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.typing import Processor

LogFormat = Literal["json", "console"]

_QUIET = ("aiokafka", "uvicorn.access", "httpx2", "httpcore2")


def get_logger(name: str) -> BoundLogger:
    """A structured logger; pass facts as keyword arguments, never inside the event's name."""
    logger: BoundLogger = structlog.stdlib.get_logger(name)
    return logger


@contextmanager
def log_context(**ids: str | int | UUID | None) -> Iterator[None]:
    """Bind ids (``run_id``, ``call_id``, ``conversation_id``, …) to every log line written inside; ``None`` is left out."""
    bound = {name: str(value) if isinstance(value, UUID) else value for name, value in ids.items() if value is not None}
    with structlog.contextvars.bound_contextvars(**bound):
        yield


def _add_trace_ids(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event


def _console() -> Processor:
    # structlog's own choice prints the local variables of every frame: tokens and passwords among them, and slowly.
    return structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)


def configure_logging(
    service: str, level: str = "INFO", log_format: LogFormat = "json", stream: TextIO | None = None
) -> None:
    """Send structlog and the standard library's loggers to one stream in one form.

    Args:
        service: name put into every line.
        level: threshold, e.g. ``INFO``.
        log_format: ``json`` for machines, ``console`` for people.
        stream: standard error unless told.
    """

    def add_service(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["service"] = service
        return event

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_trace_ids,
        add_service,
    ]
    json_tail: list[Processor] = [
        structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False)),
        structlog.processors.JSONRenderer(),
    ]
    tail = json_tail if log_format == "json" else [_console()]
    structlog.configure(
        processors=[*shared, ProcessorFormatter.wrap_for_formatter],
        wrapper_class=BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(foreign_pre_chain=shared, processors=[ProcessorFormatter.remove_processors_meta, *tail])
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


if not structlog.is_configured():
    # What is logged before or without configure_logging() must not show local variables either.
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, structlog.stdlib.add_log_level, _console()]
    )
