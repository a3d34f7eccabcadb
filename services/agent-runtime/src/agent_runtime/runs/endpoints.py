"""HTTP of runs."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query, Request
from remit_contracts.runs import (
    AnswerRequest,
    DecisionRequest,
    RunEventsAnswer,
    RunEventsQuery,
    RunStart,
    RunView,
    StepPage,
)
from service_kit.auth import Actor, CallerNotAllowedError, TokenInvalidError, TokenMissingError, require_actor
from service_kit.client import RemoteServiceUnavailableError
from service_kit.idempotency import IdempotencyConflictError, IdempotencyKeyHeader, IdempotencyKeyInvalidError
from service_kit.problems import problem_responses
from service_kit.routing import Router

from agent_runtime.deps import Runtime
from agent_runtime.runs.errors import (
    ActorMismatchError,
    AnswerInvalidError,
    ApprovalBlockedError,
    ApproverNotPermittedError,
    ConfigurationGoneError,
    ConfigurationUnknownError,
    DecisionIncompleteError,
    NotAllowedError,
    RunNotFoundError,
    RunNotWaitingError,
    SecondPersonRequiredError,
    StateUnreadableError,
    ToolUnknownError,
    TurnStaleError,
)
from agent_runtime.runs.schemas import RunList

router = Router(prefix="/v1", tags=["runs"])
COMMON = (TokenMissingError, TokenInvalidError, CallerNotAllowedError, RemoteServiceUnavailableError)
Starter = Annotated[Actor, require_actor("runs.start")]
Reader = Annotated[Actor, require_actor("runs.read")]
Decider = Annotated[Actor, require_actor("runs.decide")]
MAX_SEQUENCE = 2**62


def runtime(request: Request) -> Runtime:
    """The parts of this process."""
    found = request.app.state.runtime
    if not isinstance(found, Runtime):
        raise TypeError("app.state.runtime is not a Runtime")
    return found


@router.post(
    "/runs",
    status_code=201,
    responses=problem_responses(
        ActorMismatchError,
        NotAllowedError,
        ConfigurationUnknownError,
        ToolUnknownError,
        IdempotencyConflictError,
        IdempotencyKeyInvalidError,
        *COMMON,
        body=True,
    ),
)
async def start_run(body: RunStart, request: Request, caller: Starter, key: IdempotencyKeyHeader) -> RunView:
    """Start a run as the user the request is made for."""
    return await runtime(request).runs.start(body, caller, key)


@router.get("/runs", responses=problem_responses(*COMMON))
async def waiting_runs(
    request: Request,
    caller: Reader,
    status: Annotated[str, Query(pattern="^waiting$")] = "waiting",
    cursor: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> RunList:
    """Runs that wait for a decision or an answer the caller may give, oldest first."""
    runs = await runtime(request).runs.inbox(caller, cursor, limit)
    return RunList(runs=tuple(runs), next_cursor=runs[-1].id if len(runs) == limit else None)


@router.post("/runs:events", responses=problem_responses(*COMMON, body=True))
async def events_of_runs(body: RunEventsQuery, request: Request, caller: Reader) -> RunEventsAnswer:
    """Steps of several runs; what cannot be read is counted."""
    return await runtime(request).runs.many_events(body, caller)


@router.get("/runs/{run_id}", responses=problem_responses(RunNotFoundError, StateUnreadableError, *COMMON))
async def get_run(run_id: UUID, request: Request, caller: Reader) -> RunView:
    """A run, with its card while it waits."""
    return await runtime(request).runs.view(run_id, caller)


@router.get("/runs/{run_id}/events", responses=problem_responses(RunNotFoundError, *COMMON))
async def run_events(
    run_id: UUID,
    request: Request,
    caller: Reader,
    after: Annotated[int, Query(ge=0, le=MAX_SEQUENCE)] = 0,
    kinds: Annotated[list[str] | None, Query()] = None,
) -> StepPage:
    """Steps after a sequence; ``kinds`` may be repeated or separated by commas."""
    wanted = [part for kind in kinds for part in kind.split(",") if part] if kinds else None
    return await runtime(request).runs.events(run_id, caller, after, wanted)


@router.post(
    "/runs/{run_id}/decision",
    status_code=202,
    responses=problem_responses(
        RunNotFoundError,
        RunNotWaitingError,
        ConfigurationGoneError,
        SecondPersonRequiredError,
        TurnStaleError,
        DecisionIncompleteError,
        ApprovalBlockedError,
        ApproverNotPermittedError,
        StateUnreadableError,
        *COMMON,
        body=True,
    ),
)
async def decide(run_id: UUID, body: DecisionRequest, request: Request, caller: Decider) -> RunView:
    """Approve or decline the calls of the card, bound to its digest."""
    return await runtime(request).approvals.decide(run_id, caller, body)


@router.post(
    "/runs/{run_id}/answer",
    status_code=202,
    responses=problem_responses(
        RunNotFoundError,
        RunNotWaitingError,
        ConfigurationGoneError,
        TurnStaleError,
        AnswerInvalidError,
        StateUnreadableError,
        *COMMON,
        body=True,
    ),
)
async def answer(run_id: UUID, body: AnswerRequest, request: Request, caller: Decider) -> RunView:
    """Answer the question the run waits with."""
    return await runtime(request).approvals.answer(run_id, caller, body)


@router.post("/runs/{run_id}/cancel", status_code=202, responses=problem_responses(RunNotFoundError, *COMMON))
async def cancel(run_id: UUID, request: Request, caller: Decider) -> RunView:
    """Stop a run at its next step boundary, at once where nobody executes it."""
    return await runtime(request).runs.cancel(run_id, caller)
