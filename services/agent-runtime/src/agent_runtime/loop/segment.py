"""One segment: from a claimed run to its end or its next pause (T-01, T-11, T-12, T-23)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from remit_contracts.runs import TerminationReason
from service_kit.client import RemoteError
from service_kit.logging import get_logger

from agent_runtime.configurations.models import Configuration
from agent_runtime.configurations.registry import ConfigurationRegistry
from agent_runtime.loop import texts
from agent_runtime.loop.executed import measured
from agent_runtime.loop.execution import CallExecutor
from agent_runtime.loop.fitting import fitted
from agent_runtime.loop.held import CancelRequested, HeldRun
from agent_runtime.loop.recording import llm_step, request_steps
from agent_runtime.loop.settling import Settling
from agent_runtime.loop.turns import TurnRunner
from agent_runtime.loop.write_calls import OutcomeOpen
from agent_runtime.models.port import (
    Message,
    Model,
    ModelFailed,
    ModelNotConfigured,
    ModelReply,
    ModelRequest,
    ToolSpec,
    unique_calls,
)
from agent_runtime.runs.envelope import StateUnreadable
from agent_runtime.runs.errors import LeaseLost, StepNotStored
from agent_runtime.runs.journal import RunJournal
from agent_runtime.runs.models import Entry, RunChange, StepDraft
from agent_runtime.runs.states import message_state, read_state
from agent_runtime.tools.gate import ToolGate

logger = get_logger(__name__)
ModelSource = Callable[[Configuration], Model]


class SegmentRunner:
    """Executes segments; holds no state of a run."""

    def __init__(
        self,
        journal: RunJournal,
        configurations: ConfigurationRegistry,
        gate: ToolGate,
        models: ModelSource,
        turns: TurnRunner,
        executor: CallExecutor,
        settling: Settling,
        lease_seconds: float,
    ) -> None:
        self._journal = journal
        self._configurations = configurations
        self._gate = gate
        self._models = models
        self._turns = turns
        self._executor = executor
        self._settling = settling
        self._lease_seconds = lease_seconds

    async def execute(self, held: HeldRun) -> None:
        """Run until the end, a pause, or the loss of the lease; only a database that is away is raised on."""
        try:
            await self._load(held)
            await self._segment(held)
        except LeaseLost:
            logger.info("lease lost, the segment stops", run_id=str(held.run.id), epoch=held.run.lease_epoch)
        except CancelRequested:
            await self._guarded(held, self._settling.cancel(held))
        except StateUnreadable as error:
            await self._unreadable(held, error)
        except StepNotStored as error:
            logger.error("a step cannot be stored", run_id=str(held.run.id), reason=str(error))
            await self._guarded(held, self._settling.fail(held, TerminationReason.STEP_NOT_STORED, "step_not_stored"))
        except ModelNotConfigured as error:
            logger.error("model not configured", reason=error.reason)
            failure = self._settling.fail(held, TerminationReason.MODEL_NOT_CONFIGURED, error.code)
            await self._guarded(held, failure)
        except ModelFailed as error:
            await self._model_failed(held, error)
        except OutcomeOpen:
            await self._guarded(held, self._settling.give_back(held, "outcome_open"))
        except RemoteError as error:
            logger.warning("the store is away", run_id=str(held.run.id), reason=str(error))
            await self._guarded(held, self._settling.give_back(held, "store_unavailable"))

    async def give_back(self, held: HeldRun, error_code: str) -> None:
        """Back into the queue, or failed after too many attempts.

        Raises:
            LeaseLost: somebody else has it.
        """
        await self._settling.give_back(held, error_code)

    async def _segment(self, held: HeldRun) -> None:
        configuration = self._configurations.get(held.run.configuration)
        if not await self._recover(held):
            return
        if configuration is None:
            await self._settling.fail(held, TerminationReason.INTERNAL_ERROR, "configuration_gone")
            return
        if held.run.requeues > self._settling.requeue_limit:
            await self._settling.fail(held, TerminationReason.RETRIES_EXHAUSTED, held.run.error_code or "worker_lost")
            return
        model = self._models(configuration)
        while True:
            held.boundary()
            if held.state.open_calls:
                if not await self._turns.run(held, configuration):
                    return
                continue
            if await self._round(held, configuration, model):
                return

    async def _load(self, held: HeldRun) -> None:
        async with self._journal.database.read() as session:
            rows = await self._journal.runs.states(session, held.run.id)
        held.state = read_state(self._journal.cipher, rows)

    async def _recover(self, held: HeldRun) -> bool:
        """What became of a write call an earlier worker left behind, before anything else; false = the run waits."""
        flight = held.state.call
        if flight is None:
            return True
        try:
            executed = await self._executor.recover(held, flight)
        except (OutcomeOpen, RemoteError):
            if held.run.requeues <= self._settling.requeue_limit:
                raise
            # The last attempt: nobody could say what became of it, and that is what is recorded (S-58).
            call = next(call for call in held.state.open_calls if call.call_id == flight.call_id)
            executed = self._executor.unknown(call, flight)
        if executed is not None:
            return await self._turns.finish(held, executed)
        held.state.call = None
        return True

    async def _round(self, held: HeldRun, configuration: Configuration, model: Model) -> bool:
        """One model call; true = the run has ended."""
        if _over_budget(held, configuration):
            await self._settling.complete(held, "", TerminationReason.BUDGET_EXHAUSTED, truncated=True)
            return True
        closing = held.run.round >= configuration.max_rounds
        tools = [] if closing else self._offered(held, configuration)
        messages = list(held.state.messages)
        if closing:
            messages.append(Message(role="user", content=texts.CLOSING_PROMPT))
        fit = fitted(messages, tools, configuration.context_tokens, configuration.max_output_tokens)
        if fit.messages is None:
            await self._settling.complete(held, "", TerminationReason.CONTEXT_TRUNCATED, truncated=True)
            return True
        round_ = held.run.round + 1
        await self._note(held, request_steps(fit, tools, round_), RunChange(renew=self._lease_seconds))
        started = time.perf_counter()
        request = ModelRequest(
            messages=fit.messages,
            tools=tuple(tools),
            max_output_tokens=configuration.max_output_tokens,
            user_locale=held.run.actor.locale,
        )
        reply = cleaned(await held.interruptible(model.complete(request)))
        return await self._take(held, reply, llm_step(reply, round_, measured(started)), closing)

    async def _take(self, held: HeldRun, reply: ModelReply, step: StepDraft, closing: bool) -> bool:
        change = RunChange(
            renew=self._lease_seconds,
            round=step.round,
            input_tokens=held.run.input_tokens + reply.input_tokens,
            output_tokens=held.run.output_tokens + reply.output_tokens,
        )
        if closing:
            reason = TerminationReason.MAX_ITERATIONS
            await self._settling.complete(held, reply.content, reason, truncated=True, steps=(step,), change=change)
            return True
        if not reply.calls:
            await self._settling.complete(held, reply.content, steps=(step,), change=change)
            return True
        message = Message(role="assistant", content=reply.content, calls=reply.calls, opaque=reply.opaque)
        entry = Entry(change=change, steps=(step,), states=(message_state(message),))
        held.run = await self._journal.write(held.run.id, held.guard, entry)
        held.state.messages.append(message)
        return False

    async def _note(self, held: HeldRun, steps: tuple[StepDraft, ...], change: RunChange) -> None:
        """Steps without which the run can go on: where their content cannot be stored, they stay bare (T-10)."""
        try:
            held.run = await self._journal.write(held.run.id, held.guard, Entry(change=change, steps=steps))
        except StepNotStored as error:
            logger.warning("a step is stored without its content", run_id=str(held.run.id), reason=str(error))
            bare = tuple(StepDraft(step.kind, {"notStored": True}, step.round, step.duration_ms) for step in steps)
            held.run = await self._journal.write(held.run.id, held.guard, Entry(change=change, steps=bare))

    def _offered(self, held: HeldRun, configuration: Configuration) -> list[ToolSpec]:
        return [
            ToolSpec(name=tool.name, description=tool.description, parameters=tool.schema())
            for tool in self._gate.offered(configuration, held.run.tools)
        ]

    async def _model_failed(self, held: HeldRun, error: ModelFailed) -> None:
        logger.warning("model failed", run_id=str(held.run.id), code=error.code, exc_info=error.__cause__)
        if error.passing:
            await self._guarded(held, self._settling.give_back(held, error.code))
        else:
            failure = self._settling.fail(held, TerminationReason.PROVIDER_FAILED, error.code)
            await self._guarded(held, failure)

    async def _unreadable(self, held: HeldRun, error: StateUnreadable) -> None:
        """A newer program may read what this one does not know; damage is final, and the rows stay (T-25)."""
        logger.error("state unreadable", run_id=str(held.run.id), reason=error.reason)
        if error.reason == "unknown_version" and held.run.requeues < self._settling.requeue_limit:
            await self._guarded(held, self._settling.give_back(held, error.code))
        else:
            failure = self._settling.fail(held, TerminationReason.STATE_UNREADABLE, error.code, keep=True)
            await self._guarded(held, failure)

    async def _guarded(self, held: HeldRun, ending: Awaitable[None]) -> None:
        try:
            await ending
        except LeaseLost:
            logger.info("lease lost, the segment stops", run_id=str(held.run.id))


def _over_budget(held: HeldRun, configuration: Configuration) -> bool:
    limit = configuration.budget.max_total_tokens
    return limit is not None and held.run.input_tokens + held.run.output_tokens >= limit


def cleaned(reply: ModelReply) -> ModelReply:
    """The reply without lone surrogates, which no database takes, and with call ids unique in the turn."""
    calls = unique_calls(
        tuple(
            call.model_copy(update={"arguments": clean(call.arguments), "name": clean(call.name)})
            for call in reply.calls
        )
    )
    return reply.model_copy(update={"content": clean(reply.content), "thinking": clean(reply.thinking), "calls": calls})


def clean(value: object) -> object:
    """Texts, also inside lists and objects, as valid Unicode."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    if isinstance(value, dict):
        return {str(clean(key)): clean(item) for key, item in value.items()}
    return value
