"""Routes of calls, rehearsals and claims, for the agent-runtime on behalf of a user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Header, Request, Response
from pydantic import Field
from remit_contracts.actor import ActorContext
from remit_contracts.base import RequestContract
from remit_contracts.calls import (
    MAX_EPOCH,
    ApplyRequest,
    CallOutcome,
    CallResolution,
    CallResult,
    OpenedCall,
    OpenRequest,
    OperationsAnswer,
    OperationsRequest,
    RehearsalRequest,
    RehearsalResult,
)
from remit_contracts.claims import ClaimsAnswer, ClaimsRequest
from service_kit.auth import ServiceAssertion, require_service
from service_kit.problems import problem_responses
from service_kit.routing import Router

from content_store.calls.connections import Pool, acquire
from content_store.calls.environment import StoreEnvironment
from content_store.calls.errors import (
    ActorMismatch,
    ActorUnknown,
    CallBusy,
    CallConflict,
    CallExists,
    CallFenced,
    CallGone,
    CallLocked,
    CallNotFound,
    CallOutOfOrder,
    CallResolved,
    CallUncertain,
    CallUndone,
    NotInteractive,
    ServiceStopping,
    TooManyCalls,
    WorkspaceDenied,
)
from content_store.calls.interactive import OpenCalls
from content_store.calls.rehearsal import RehearsalService
from content_store.calls.service import CallService
from content_store.records.gateway import RecordGateway
from content_store.scope.claims import ClaimCheck
from content_store.scope.topology import PageTopology

router = Router(prefix="/v1", tags=["calls"])
# What a service needs in its caller table to use these routes.
OPERATIONS = ("calls.apply", "calls.open", "calls.resolve", "calls.read", "rehearsals", "claims")

_BEGINNING = (CallFenced, CallExists, CallResolved, CallLocked, CallConflict, TooManyCalls)
_ACTING = (ActorMismatch, ActorUnknown, WorkspaceDenied)
_GOING_ON = (CallNotFound, CallGone, CallBusy, CallOutOfOrder, CallUndone, CallUncertain, CallLocked, CallConflict)


@dataclass(frozen=True)
class Calls:
    """What the routes use; the application keeps it in ``app.state.calls``.

    Attributes:
        service: calls in one request.
        open_calls: calls that stay open.
        rehearsals: what calls would do.
        env: shared by all.
        reads: connections of claims.
    """

    service: CallService
    open_calls: OpenCalls
    rehearsals: RehearsalService
    env: StoreEnvironment
    reads: Pool


class ResolveRequest(RequestContract):
    """Body of ``POST /v1/calls/{callId}/resolve``."""

    run_id: Annotated[UUID, Field(strict=False)]
    lease_epoch: Annotated[int, Field(ge=1, le=MAX_EPOCH)]


def _calls(request: Request) -> Calls:
    calls = request.app.state.calls
    if not isinstance(calls, Calls):
        raise TypeError("app.state.calls is not set up")
    return calls


CallsDependency = Annotated[Calls, Depends(_calls)]
CallToken = Annotated[str, Header(alias="Call-Token", max_length=128)]
CallSequence = Annotated[int, Header(alias="Call-Seq", ge=1)]


def _check_actor(actor: ActorContext, caller: ServiceAssertion) -> None:
    """The actor is never taken from the body alone: it is the user the assertion stands for (S-16).

    Raises:
        ActorMismatch: another one.
    """
    if caller.user_uid != actor.user_uid:
        raise ActorMismatch


@router.post("/calls/{call_id}/apply", responses=problem_responses(*_BEGINNING, *_ACTING, body=True))
async def apply_call(
    call_id: UUID,
    body: ApplyRequest,
    calls: CallsDependency,
    caller: Annotated[ServiceAssertion, require_service("calls.apply")],
) -> CallResult:
    """Carry out a call in one transaction: judged, then committed or undone."""
    _check_actor(body.actor, caller)
    return await calls.service.apply(call_id, body)


@router.post(
    "/calls/{call_id}/open",
    status_code=201,
    responses=problem_responses(*_BEGINNING, *_ACTING, ServiceStopping, body=True),
)
async def open_call(
    call_id: UUID,
    body: OpenRequest,
    calls: CallsDependency,
    caller: Annotated[ServiceAssertion, require_service("calls.open")],
) -> OpenedCall:
    """Open a call whose tool reads its own writes between requests."""
    _check_actor(body.actor, caller)
    return await calls.open_calls.open(call_id, body)


@router.post("/calls/{call_id}/operations", responses=problem_responses(*_GOING_ON, NotInteractive, body=True))
async def call_operations(
    call_id: UUID,
    body: OperationsRequest,
    token: CallToken,
    sequence: CallSequence,
    calls: CallsDependency,
    _caller: Annotated[ServiceAssertion, require_service("calls.open")],
) -> OperationsAnswer:
    """Carry out operations of an open call."""
    return await calls.open_calls.operations(call_id, token, sequence, body.operations)


@router.post("/calls/{call_id}/commit", responses=problem_responses(*_GOING_ON))
async def commit_call(
    call_id: UUID,
    token: CallToken,
    sequence: CallSequence,
    calls: CallsDependency,
    _caller: Annotated[ServiceAssertion, require_service("calls.open")],
) -> CallResult:
    """Judge an open call, then commit it or undo it."""
    return await calls.open_calls.commit(call_id, token, sequence)


@router.delete("/calls/{call_id}", status_code=204, responses=problem_responses(*_GOING_ON))
async def abandon_call(
    call_id: UUID,
    token: CallToken,
    sequence: CallSequence,
    calls: CallsDependency,
    _caller: Annotated[ServiceAssertion, require_service("calls.open")],
) -> Response:
    """Undo an open call."""
    await calls.open_calls.abandon(call_id, token, sequence)
    return Response(status_code=204)


@router.post("/calls/{call_id}/resolve", responses=problem_responses(CallFenced, CallExists, TooManyCalls, body=True))
async def resolve_call(
    call_id: UUID,
    body: ResolveRequest,
    calls: CallsDependency,
    _caller: Annotated[ServiceAssertion, require_service("calls.resolve")],
) -> CallResolution:
    """Fence a call and say how it ended; what is not done then is never done under this id."""
    return await calls.service.resolve(call_id, body.run_id, body.lease_epoch)


@router.get("/calls/{call_id}", responses=problem_responses(TooManyCalls))
async def known_call(
    call_id: UUID,
    calls: CallsDependency,
    _caller: Annotated[ServiceAssertion, require_service("calls.read")],
) -> CallResolution:
    """What is known of a call, without a fence."""
    if calls.open_calls.holds(call_id):
        return CallResolution(call_id=call_id, outcome=CallOutcome.OPEN)
    return await calls.service.known(call_id)


@router.post("/rehearsals/{rehearsal_id}", responses=problem_responses(*_ACTING, TooManyCalls, body=True))
async def rehearse(
    rehearsal_id: UUID,
    body: RehearsalRequest,
    calls: CallsDependency,
    caller: Annotated[ServiceAssertion, require_service("rehearsals")],
) -> RehearsalResult:
    """Say what the calls of a turn would do; nothing of it stays."""
    _check_actor(body.actor, caller)
    return await calls.rehearsals.rehearse(rehearsal_id, body)


@router.post("/claims", responses=problem_responses(TooManyCalls, body=True))
async def judge_claims(
    body: ClaimsRequest,
    calls: CallsDependency,
    _caller: Annotated[ServiceAssertion, require_service("claims")],
) -> ClaimsAnswer:
    """Layer one: which claims of a turn lie outside their scope."""
    return await answer_claims(calls.env, calls.reads, body)


async def answer_claims(env: StoreEnvironment, reads: Pool, body: ClaimsRequest) -> ClaimsAnswer:
    """Judge all claims on one snapshot of the tree."""
    connection: Any = await acquire(reads, env.limits.acquire_seconds)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            gateway = RecordGateway(connection, env.schema, env.schema_name)
            check = ClaimCheck(body.scope, PageTopology(gateway, body.workspace_id))
            return ClaimsAnswer(answers=tuple(await check.answers(body.claims)))
    finally:
        await reads.release(connection)
