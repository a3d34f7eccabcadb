"""One call of a turn, in the order of T-04: registered, offered, permitted, rules, fence and lease, execute, bound."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from remit_contracts.calls import CallResult, ToolEffect
from remit_contracts.changes import ObservedChangeSet
from remit_contracts.steps import Refusal, RefusalKind
from service_kit.client import RemoteError
from service_kit.logging import get_logger
from sqlalchemy.exc import SQLAlchemyError

from agent_runtime.approvals.preparation import TurnPreparer, call_scope
from agent_runtime.clients.store import StoreClient
from agent_runtime.configurations.models import Configuration
from agent_runtime.loop import texts
from agent_runtime.loop.executed import Executed, invocation_denied, measured, refused_changes, timed
from agent_runtime.loop.held import HeldRun
from agent_runtime.loop.outcomes import judged, recorded_changes
from agent_runtime.loop.waiting import of_waiting_turn
from agent_runtime.loop.write_calls import EndKind, OutcomeOpen, WriteCalls
from agent_runtime.loop.writing import CallItem, CallRefused, CallWriter, CardBounced, HandedCall
from agent_runtime.models.port import RequestedCall
from agent_runtime.rules.contracts import RuleDenial
from agent_runtime.runs.errors import LeaseLost, StepNotStored
from agent_runtime.runs.models import GovernanceEntry
from agent_runtime.runs.states import CallInFlight
from agent_runtime.tools.contracts import (
    DependencyPending,
    Plan,
    PlanRefused,
    Tool,
    ToolArgumentError,
    ToolContext,
    WriteTool,
)
from agent_runtime.tools.result import ToolResult

logger = get_logger(__name__)


class CallExecutor:
    """Executes calls as the run's owner."""

    def __init__(
        self,
        preparer: TurnPreparer,
        store: StoreClient,
        calls: WriteCalls,
        max_content: int,
        max_artifacts: int,
        remote_budget: int,
    ) -> None:
        self._preparer = preparer
        self._store = store
        self._calls = calls
        self._writer = CallWriter(calls)
        self._max_content = max_content
        self._max_artifacts = max_artifacts
        self._remote_budget = remote_budget

    async def run(
        self,
        held: HeldRun,
        call: RequestedCall,
        configuration: Configuration,
        denials: Mapping[str, RuleDenial],
    ) -> Executed:
        """The call's result, whatever happens to it; bounded, timed, with its evidence.

        Raises:
            CardBounced: see there.
            LeaseLost: write nothing more.
            RemoteError: the store is away; nothing is known to have happened.
            OutcomeOpen: the outcome of a write cannot be had for now.
        """
        started = time.perf_counter()
        executed = await self._result(held, call, configuration, denials)
        executed.result = executed.result.with_bounded_channels(self._max_content, self._max_artifacts)
        if executed.duration_ms < 0:
            executed.duration_ms = measured(started)
        return executed

    async def recover(self, held: HeldRun, flight: CallInFlight) -> Executed | None:
        """The result of a call an earlier worker sent; none where it did not happen and may run again (T-23)."""
        started = time.perf_counter()
        end = await self._calls.resolve(held, flight)
        call = RequestedCall(call_id=flight.call_id, name=flight.tool, arguments=flight.arguments)
        if end.kind is EndKind.ROLLED_BACK:
            return None
        if end.result is None:
            return self.unknown(call, flight)
        context = self._store.context(held.run.actor)
        executed = Executed(call, ToolResult.error(texts.TOOL_FAILED), 0.0, store_call_id=end.call_id)
        executed.reached_store = True
        tool = self._preparer.tool(flight.tool)
        dependency: str | None = None
        if isinstance(tool, WriteTool):
            try:
                executed.result = await _concluded(tool, flight.plan, end.result, context)
            except DependencyPending as pending:
                executed.result, dependency = _pending(tool, pending)
        executed.result = judged(executed.result, end.result, flight.scope)
        executed.dependency = None if executed.result.is_error else dependency
        executed.result = executed.result.with_bounded_channels(self._max_content, self._max_artifacts)
        executed.changes = recorded_changes(end.result)
        executed.duration_ms = measured(started)
        return executed

    def unknown(self, call: RequestedCall, flight: CallInFlight) -> Executed:
        """A call nobody can say anything about; said so (S-58)."""
        changes = ObservedChangeSet.try_from_event_payload({"coverage": "not_captured"})
        result = ToolResult.error(texts.NOT_CONFIRMED)
        return Executed(call, result, 0.01, changes, flight.store_call_id, reached_store=True)

    async def _result(
        self,
        held: HeldRun,
        call: RequestedCall,
        configuration: Configuration,
        denials: Mapping[str, RuleDenial],
    ) -> Executed:
        turn = held.state.turn
        try:
            readied = self._preparer.ready(call, held.run, configuration)
        except ToolArgumentError as error:
            return timed(call, ToolResult.error(error.text + " Nothing was changed."))
        waited = of_waiting_turn(call, readied, turn, denials)
        if waited is not None:
            return waited
        if isinstance(readied, str):
            return self._not_usable(call, readied)
        denial = denials.get(call.call_id)
        if denial is not None:
            return self._denied(call, denial, held)
        if readied.tool.effect is ToolEffect.REMOTE and not self._within_remote_budget(held):
            return timed(call, ToolResult.error(texts.REMOTE_BUDGET))
        turn_call = turn.call(call.call_id) if turn is not None else None
        return await self._execute(held, CallItem(call, readied, configuration, turn_call))

    def _not_usable(self, call: RequestedCall, code: str) -> Executed:
        text = texts.UNKNOWN_TOOL if code == "unknown_tool" else texts.NOT_PERMITTED
        refusal = Refusal(kind=RefusalKind.POLICY, code=code)
        executed = timed(call, ToolResult.error(text, refusal))
        executed.governance.append(GovernanceEntry("tool_denied", call.name, call.call_id, reason=code))
        return executed

    def _denied(self, call: RequestedCall, denial: RuleDenial, held: HeldRun) -> Executed:
        words = self._preparer.denial_words(denial, held.run.actor)
        refusal = Refusal(kind=RefusalKind.POLICY, code=denial.rule)
        executed = timed(call, ToolResult.error(texts.denied_by_rule(denial.rule, words), refusal))
        executed.changes = refused_changes(denial)
        executed.governance.append(invocation_denied(call, denial))
        return executed

    def _within_remote_budget(self, held: HeldRun) -> bool:
        held.remote_calls += 1
        return held.remote_calls <= self._remote_budget

    async def _execute(self, held: HeldRun, item: CallItem) -> Executed:
        context = self._store.context(held.run.actor)
        tool = item.readied.tool
        approved = item.turn_call is not None and (
            held.state.turn is not None and held.state.turn.approves(item.call.call_id)
        )
        governance: list[GovernanceEntry] = []
        dependency: str | None = None
        try:
            if isinstance(tool, WriteTool):
                result = await self._write(held, item, tool, context, approved)
            elif tool.needs_approval() and not approved:
                result = ToolResult.error(texts.WRITE_UNAPPROVED)
            else:
                result = await tool.execute(item.readied.arguments, context)
        except CallRefused as refused:
            result = refused.result
        except PlanRefused as refusal:
            result = ToolResult.error(refusal.text)
        except DependencyPending as pending:
            result, dependency = _pending(tool, pending)
        except (LeaseLost, StepNotStored, OutcomeOpen, RemoteError, SQLAlchemyError, CardBounced):
            raise
        except Exception as error:
            logger.error("tool failed", tool=tool.name, run_id=str(held.run.id), exc_info=error)
            result = ToolResult.error(texts.TOOL_FAILED)
        if result.content == texts.WRITE_UNAPPROVED:
            governance.append(GovernanceEntry("write_unapproved", tool.name, item.call.call_id))
        executed = self._finished(held, item, result, governance)
        # Refused, undone or failed, the call is an error and nothing is waited for.
        executed.dependency = None if executed.result.is_error else dependency
        return executed

    def _finished(
        self, held: HeldRun, item: CallItem, result: ToolResult, governance: list[GovernanceEntry]
    ) -> Executed:
        executed = timed(item.call, result)
        executed.governance += governance
        executed.store_call_id = item.store_call_id
        executed.reached_store = item.used
        if item.answer is not None:
            executed.result = judged(result, item.answer, call_scope(held.run, item.configuration))
            executed.changes = recorded_changes(item.answer)
        elif item.used and result.content.startswith(texts.NOT_CONFIRMED):
            executed.changes = ObservedChangeSet.try_from_event_payload({"coverage": "not_captured"})
        return executed

    async def _write(
        self, held: HeldRun, item: CallItem, tool: WriteTool[Any], context: ToolContext, approved: bool
    ) -> ToolResult:
        plan = item.turn_call.plan if item.turn_call is not None else None
        if plan is None or not approved:
            # No approved plan: the tool says why it cannot be done, or the write is not allowed (T-36).
            plan = await tool.plan(item.readied.arguments, context)
            if not approved or item.turn_call is None or item.turn_call.refusal is not None:
                return ToolResult.error(texts.WRITE_UNAPPROVED)
        return await tool.write(plan, HandedCall(self._writer, held, item), context)


async def _concluded(tool: WriteTool[Any], plan: Plan, result: CallResult, context: ToolContext) -> ToolResult:
    try:
        return await tool.conclude(plan, result, context)
    except (RemoteError, DependencyPending):
        raise
    except Exception as error:
        logger.error("tool failed", tool=tool.name, exc_info=error)
        return ToolResult.error(texts.TOOL_FAILED)


def _pending(tool: Tool[Any], pending: DependencyPending) -> tuple[ToolResult, str | None]:
    """What a call has done that waits for a dependency; a failure where the tool does not declare one (S-61)."""
    if not tool.dependency:
        logger.error("tool waits for a dependency and declares none", tool=tool.name)
        return ToolResult.error(texts.TOOL_FAILED), None
    return pending.result, pending.name
