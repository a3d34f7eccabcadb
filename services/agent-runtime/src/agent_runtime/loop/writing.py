"""The one write of a call: what is sent, under which id, and what its answer means for the tool (T-23, T-36, CALLS 1)."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from remit_contracts.calls import ApplyRequest, CallOutcome, CallResult, RollbackReason
from service_kit.ids import uuid7

from agent_runtime.approvals.preparation import Readied, call_scope
from agent_runtime.approvals.turns import TurnCall
from agent_runtime.configurations.models import Configuration
from agent_runtime.loop import texts
from agent_runtime.loop.held import HeldRun
from agent_runtime.loop.write_calls import CallEnd, EndKind, WriteCalls
from agent_runtime.models.port import RequestedCall
from agent_runtime.runs.states import CallInFlight
from agent_runtime.tools.contracts import Plan
from agent_runtime.tools.result import ToolResult

MAX_SENDS = 3


class CardBounced(Exception):
    """The call would have changed more than its card showed; it was undone and the card has to be shown anew (CALLS 4)."""


class CallRefused(Exception):
    """Ends a tool's write without an answer to conclude from; carries what the model reads."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.content)
        self.result = result


@dataclass
class CallItem:
    """A call while it executes.

    Attributes:
        used: its write was handed to the store, or was about to be.
        answer: the store's, once there is one.
    """

    call: RequestedCall
    readied: Readied
    configuration: Configuration
    turn_call: TurnCall | None
    used: bool = False
    answer: CallResult | None = None
    store_call_id: UUID | None = None


class CallWriter:
    """Sends the plan of a call as a request that is remembered first."""

    def __init__(self, calls: WriteCalls) -> None:
        self._calls = calls

    async def apply(self, held: HeldRun, item: CallItem, plan: Plan) -> CallResult:
        """Remember, send, and find out; a call known not to have happened is sent anew under a new id.

        Raises:
            CardBounced: it would have changed more than was shown.
            CallRefused: there is no answer to conclude from.
            LeaseLost, OutcomeOpen: see :class:`WriteCalls`.
        """
        previous: tuple[UUID, ...] = ()
        while True:
            flight = _flight(held, item, plan, previous)
            item.store_call_id = flight.store_call_id
            await self._calls.remember(held, flight)
            end = await self._calls.send(held, flight)
            if end.kind is EndKind.ROLLED_BACK and len(previous) + 1 < MAX_SENDS:
                previous = (*previous, flight.store_call_id)
                continue
            return _answer(item, end)


class HandedCall:
    """The one call a write tool is handed."""

    def __init__(self, writer: CallWriter, held: HeldRun, item: CallItem) -> None:
        self._writer = writer
        self._held = held
        self._item = item

    async def apply(self, plan: Plan) -> CallResult:
        """Carry the plan out; a second time is a defect of the tool."""
        if self._item.answer is not None or self._item.used:
            raise RuntimeError("a call is applied once")
        self._item.used = True
        return await self._writer.apply(self._held, self._item, plan)


def _answer(item: CallItem, end: CallEnd) -> CallResult:
    if end.result is not None:
        bounced = end.result.outcome is CallOutcome.ROLLED_BACK and (
            end.result.reason is RollbackReason.MORE_THAN_SHOWN
        )
        if bounced:
            raise CardBounced
        item.answer = end.result
        return end.result
    if end.kind is EndKind.UNKNOWN:
        raise CallRefused(ToolResult.error(texts.NOT_CONFIRMED))
    if end.kind is EndKind.ROLLED_BACK:
        raise CallRefused(ToolResult.error(texts.ROLLED_BACK))
    text = texts.LOCKED if end.code in {"locked", "conflict"} else f"{texts.STORE_REFUSED} ({end.code})"
    raise CallRefused(ToolResult.error(text))


def _flight(held: HeldRun, item: CallItem, plan: Plan, previous: tuple[UUID, ...]) -> CallInFlight:
    """The request with everything the store needs to hold it to: fence, actor, scope as it is now, what was shown."""
    scope = call_scope(held.run, item.configuration)
    request = ApplyRequest(
        run_id=held.run.id,
        lease_epoch=held.run.lease_epoch,
        actor=held.run.actor,
        scope=scope,
        scope_required=item.configuration.require_assignment_scope,
        tool=item.call.name,
        effect=item.readied.tool.effect,
        write_target=plan.target,
        operations=list(plan.operations),
        shown=list(shown) if (shown := item.turn_call.shown if item.turn_call else None) is not None else None,
    )
    return CallInFlight(
        call_id=item.call.call_id,
        tool=item.call.name,
        arguments=item.call.arguments,
        store_call_id=uuid7(),
        body=request.model_dump_json(by_alias=True),
        plan=plan,
        round=held.run.round,
        scope=scope,
        previous=previous,
    )
