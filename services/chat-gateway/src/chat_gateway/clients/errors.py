"""Errors of other services, as callers of the gateway read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service_kit.client import RemoteError, RemoteProblem, RemoteServiceUnavailableError
from service_kit.problems import ProblemError

_OWN = frozenset({"type", "title", "status", "code", "detail", "instance", "requestId"})


def forwarded(problem: RemoteProblem, members: Mapping[str, Any] | None = None) -> ProblemError:
    """The other service's problem under its own code and status; texts and further members as it sent them."""
    told, said = str(problem.document.get("title") or "The request was refused"), problem.document.get("detail")

    class Forwarded(ProblemError):
        """A problem of another service."""

        code = problem.code
        status = problem.status
        title = told
        detail_text = said if isinstance(said, str) else None

    extra = (
        {name: value for name, value in problem.document.items() if name not in _OWN} if members is None else members
    )
    retry_after = problem.headers.get("retry-after")
    return Forwarded(members=extra, headers={"Retry-After": retry_after} if retry_after else None)


def unavailable(error: RemoteError) -> ProblemError:
    """The other service does not answer, or answers with a fault of its own."""
    return RemoteServiceUnavailableError(service=getattr(error, "service", "a service"))


def as_problem(error: RemoteError) -> ProblemError:
    """A refusal is passed on, a fault is not the caller's business."""
    if isinstance(error, RemoteProblem) and 400 <= error.status < 500 and error.status not in {401, 403}:
        return forwarded(error)
    return unavailable(error)
