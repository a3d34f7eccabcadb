"""One turn: scan it whole, suspend before anything of it runs, else carry its calls out in order (T-02, T-04, T-14)."""

from __future__ import annotations

from collections.abc import Sequence

from remit_contracts.calls import CallOutcome
from remit_contracts.runs import Decision

from agent_runtime.approvals.preparation import Readied, TurnPreparer, needs_card
from agent_runtime.approvals.turns import TurnState, mark_stale, more_than_shown, stale_calls
from agent_runtime.configurations.models import Configuration
from agent_runtime.loop.executed import Executed
from agent_runtime.loop.execution import CallExecutor
from agent_runtime.loop.held import HeldRun
from agent_runtime.loop.recording import tool_message, tool_steps
from agent_runtime.loop.settling import Settling
from agent_runtime.loop.writing import CardBounced
from agent_runtime.models.port import RequestedCall
from agent_runtime.rules.contracts import RuleDenial
from agent_runtime.runs.journal import RunJournal
from agent_runtime.runs.models import Entry, RunChange
from agent_runtime.runs.states import message_state
from agent_runtime.tools.contracts import ToolArgumentError


class TurnRunner:
    """Runs the open calls of the newest turn.

    Args:
        lease_seconds: renewed with every write.
    """

    def __init__(
        self,
        journal: RunJournal,
        preparer: TurnPreparer,
        executor: CallExecutor,
        settling: Settling,
        lease_seconds: float,
    ) -> None:
        self._journal = journal
        self._preparer = preparer
        self._executor = executor
        self._settling = settling
        self._lease_seconds = lease_seconds

    async def run(self, held: HeldRun, configuration: Configuration) -> bool:
        """Whether the run goes on; false = it waits for a person now."""
        turn = held.state.turn
        decided = turn is not None and (turn.decisions is not None or turn.answer is not None)
        calls = held.state.open_calls
        if not decided and await self._suspended(held, calls, configuration):
            return False
        denials = await self._preparer.denials(calls, held.run, configuration)
        if decided and turn is not None and not await self._mixed_still_holds(held, turn, configuration, denials):
            return False
        for call in held.state.open_calls:
            held.boundary()
            try:
                executed = await self._executor.run(held, call, configuration, denials)
            except CardBounced:
                await self._bounce(held, configuration, denials)
                return False
            if not await self.finish(held, executed):
                return False
        return True

    async def finish(self, held: HeldRun, executed: Executed) -> bool:
        """Record a call; false = it waits for a dependency, and the run with it (S-61).

        Raises:
            StepNotStored: see :meth:`record`.
        """
        if executed.dependency is None:
            await self.record(held, executed)
            return True
        turn = self._preparer.waits_for(
            executed.dependency, executed.call, held.state.open_calls, held.run, _round(held), executed.result.content
        )
        await self._settling.suspend(held, turn, tool_steps(executed, turn.round), tuple(executed.governance))
        held.state.call, held.state.turn = None, turn
        return False

    async def record(self, held: HeldRun, executed: Executed) -> None:
        """Result, steps and events of a call in one transaction; the call is no longer in flight.

        Raises:
            StepNotStored: a write's evidence cannot be stored; that ends the run (T-10).
        """
        message = tool_message(executed)
        last = len(held.state.open_calls) <= 1
        entry = Entry(
            change=RunChange(renew=self._lease_seconds),
            steps=() if executed.recorded else tool_steps(executed, _round(held)),
            states=(message_state(message),),
            drop=("call", "turn") if last else ("call",),
            governance=tuple(executed.governance),
        )
        held.run = await self._journal.write(held.run.id, held.guard, entry)
        held.state.messages.append(message)
        held.state.call = None
        if last:
            held.state.turn = None

    async def _suspended(self, held: HeldRun, calls: Sequence[RequestedCall], configuration: Configuration) -> bool:
        """Suspend where a call of the turn needs a person; approval comes before input (T-02)."""
        if self._some_need_approval(calls, held, configuration):
            turn = await self._preparer.prepare(calls, held.run, configuration, held.run.lease_epoch)
            if needs_card(turn):
                await self._settling.suspend(held, turn)
                return True
        question = self._preparer.question(calls, held.run, configuration)
        if question is not None:
            await self._settling.suspend(held, question)
            return True
        return False

    def _some_need_approval(self, calls: Sequence[RequestedCall], held: HeldRun, configuration: Configuration) -> bool:
        for call in calls:
            try:
                readied = self._preparer.ready(call, held.run, configuration)
            except ToolArgumentError:
                continue
            if isinstance(readied, Readied) and readied.tool.needs_approval():
                return True
        return False

    async def _mixed_still_holds(
        self, held: HeldRun, turn: TurnState, configuration: Configuration, denials: dict[str, RuleDenial]
    ) -> bool:
        """Rehearse the approved calls again without the declined ones they may build on (CALLS 4).

        Only before the first of them ran; more than was shown brings the card back with what is left.
        """
        decisions = turn.decisions or {}
        if Decision.DECLINE not in decisions.values() or held.state.turn_started:
            return True
        open_ids = {call.call_id for call in held.state.open_calls}
        approved = [
            call
            for call in turn.calls
            if turn.approves(call.call_id) and call.call_id in open_ids and call.call_id not in denials
        ]
        again = await self._preparer.rehearse(approved, held.run, configuration, held.run.lease_epoch, held.run.actor)
        for call in approved:
            now = again.get(call.call_id)
            if now is None or call.shown is None or now.outcome is CallOutcome.UNKNOWN:
                continue
            if more_than_shown(call.shown, now.shown):
                await self._bounce(held, configuration, denials)
                return False
        return True

    async def _bounce(self, held: HeldRun, configuration: Configuration, denials: dict[str, RuleDenial]) -> None:
        """Answer the declined calls, then show a fresh card of what is left."""
        before = held.state.turn
        decisions = (before.decisions if before is not None else None) or {}
        for call in held.state.open_calls:
            if decisions.get(call.call_id) is Decision.DECLINE:
                await self.record(held, await self._executor.run(held, call, configuration, denials))
        turn = await self._preparer.prepare(held.state.open_calls, held.run, configuration, held.run.lease_epoch)
        if before is not None:
            turn = mark_stale(turn, stale_calls(before, turn))
        await self._settling.suspend(held, turn)


def _round(held: HeldRun) -> int:
    return held.state.turn.round if held.state.turn is not None else held.run.round
