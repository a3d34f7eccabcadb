"""Makes the turn a run waits with: plans, rules, rehearsal; the same for the first card and for an approval (T-30, T-34)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remit_contracts.actor import ActorContext
from remit_contracts.calls import (
    CallOutcome,
    RehearsalRequest,
    RehearsedCall,
    RehearsedCallRequest,
    RollbackReason,
)
from remit_contracts.runs import PendingQuestion, RefusedByRule
from remit_contracts.scope import EffectiveAssignmentScope, effective_scope
from service_kit.client import RemoteError, RemoteProblem, RemoteUnavailable
from service_kit.ids import uuid7
from service_kit.logging import get_logger
from service_kit.texts import Texts

from agent_runtime.approvals.turns import MORE_LINES, TurnCall, TurnState, bounded_lines, without_stale_expectations
from agent_runtime.clients.store import StoreClient
from agent_runtime.configurations.models import Configuration
from agent_runtime.models.port import RequestedCall
from agent_runtime.questions.pending import GO_ON, READY, WAITS_FOR, dependency_name, input_turn
from agent_runtime.rules.contracts import RuleCall, RuleContext, RuleDenial
from agent_runtime.rules.engine import RuleEngine, explanation
from agent_runtime.runs.errors import LeaseLost
from agent_runtime.runs.models import RunRow
from agent_runtime.tools.contracts import PlanRefused, Tool, ToolArgumentError, ToolContext, WriteTool
from agent_runtime.tools.gate import ToolGate
from agent_runtime.tools.registry import ToolRegistry, read_arguments

logger = get_logger(__name__)
PREVIEW_FAILED = "The preview could not be made."
NO_PREVIEW = "This tool has no preview."
MAX_REHEARSED = 50


@dataclass(frozen=True)
class Readied:
    """A call whose tool and arguments are usable."""

    call: RequestedCall
    tool: Any
    arguments: Any


def call_scope(run: RunRow, configuration: Configuration) -> EffectiveAssignmentScope | None:
    """The scope of a call, from the run's and the configuration as it is now; never stored (S-12 to S-15)."""
    return effective_scope(
        run.actor.assignment_scope,
        required=configuration.require_assignment_scope,
        max_depth=configuration.assignment_scope_max_depth,
    )


class TurnPreparer:
    """Prepares turns under the rights of the run's owner."""

    def __init__(
        self, store: StoreClient, registry: ToolRegistry, gate: ToolGate, rules: RuleEngine, texts: Texts
    ) -> None:
        self._store = store
        self._registry = registry
        self._gate = gate
        self._rules = rules
        self._texts = texts

    def ready(self, call: RequestedCall, run: RunRow, configuration: Configuration) -> Readied | str:
        """The call with its tool and arguments, or what is wrong with it.

        Raises:
            ToolArgumentError: the arguments do not fit the tool.
        """
        refusal = self._gate.refusal(call.name, configuration, run.tools)
        tool = self._registry.get(call.name)
        if refusal is not None or tool is None:
            return refusal or "unknown_tool"
        return Readied(call, tool, read_arguments(tool, call.arguments))

    def tool(self, name: str) -> Tool[Any] | None:
        """The registered tool of this name."""
        return self._registry.get(name)

    async def denials(
        self, calls: Sequence[RequestedCall], run: RunRow, configuration: Configuration
    ) -> dict[str, RuleDenial]:
        """What the rules refuse of these calls; all of a turn are judged together."""
        asked: list[RuleCall] = []
        for call in calls:
            try:
                readied = self.ready(call, run, configuration)
            except ToolArgumentError:
                continue
            if isinstance(readied, Readied):
                claim = readied.tool.scoped_write(readied.arguments)
                asked.append(RuleCall(call.call_id, readied.tool, readied.arguments, claim))
        if not asked:
            return {}
        scope = call_scope(run, configuration)
        return await self._rules.judge(RuleContext(run.actor, configuration, scope, asked))

    def denial_words(self, denial: RuleDenial, actor: ActorContext) -> str:
        """A denial in the acting user's language (S-24)."""
        return explanation(denial, self._texts, actor.locale)

    async def prepare(
        self, calls: Sequence[RequestedCall], run: RunRow, configuration: Configuration, epoch: int
    ) -> TurnState:
        """The approval turn of these calls, bound to its digest."""
        denials = await self.denials(calls, run, configuration)
        context = self._store.context(run.actor)
        prepared = [await self._call(call, run, configuration, denials, context) for call in calls]
        rehearsed, rehearsal_id = await self._rehearsed(prepared, run, configuration, epoch)
        turn = TurnState(kind="approval", calls=rehearsed, round=run.round, rehearsal_id=rehearsal_id)
        return turn.with_digest()

    def question(self, calls: Sequence[RequestedCall], run: RunRow, configuration: Configuration) -> TurnState | None:
        """The input turn of these calls, where one of them asks the person something it may ask."""
        for call in calls:
            try:
                readied = self.ready(call, run, configuration)
            except ToolArgumentError:
                continue
            if isinstance(readied, Readied) and readied.tool.requires_input:
                arguments = readied.arguments
                question = PendingQuestion(
                    call_id=call.call_id, question=arguments.question, options=tuple(arguments.options)
                )
                return input_turn(calls, question, run.round)
        return None

    def waits_for(
        self, name: str, call: RequestedCall, calls: Sequence[RequestedCall], run: RunRow, round_: int, done: str
    ) -> TurnState:
        """The input turn of a call that was carried out and now waits for a dependency, named to the person (S-61)."""
        locale = run.actor.locale
        question = PendingQuestion(
            call_id=call.call_id,
            question=self._texts.text(WAITS_FOR, locale, name=dependency_name(name)),
            options=(self._texts.text(READY, locale), self._texts.text(GO_ON, locale)),
        )
        return input_turn(calls, question, round_, done)

    async def rehearse(
        self, calls: Sequence[TurnCall], run: RunRow, configuration: Configuration, epoch: int, actor: ActorContext
    ) -> dict[str, RehearsedCall]:
        """What these calls would do in this order for this actor; each one that could not be rehearsed says why."""
        wanted = [call for call in calls if call.rehearsable][:MAX_REHEARSED]
        if not wanted:
            return {}
        request = RehearsalRequest(
            run_id=run.id,
            lease_epoch=epoch,
            actor=actor,
            scope=call_scope(run, configuration),
            scope_required=configuration.require_assignment_scope,
            calls=[_rehearsed_request(call, self._registry) for call in wanted],
        )
        try:
            answer = await self._store.rehearse(uuid7(), request)
        except RemoteUnavailable as error:
            if not error.sent:
                raise
            return {call.call_id: not_rehearsed(call.call_id, "timeout") for call in wanted}
        except RemoteProblem as problem:
            if problem.code == "fenced":
                raise LeaseLost from problem
            logger.warning("rehearsal refused", code=problem.code, run_id=str(run.id))
            return {call.call_id: not_rehearsed(call.call_id, problem.code) for call in wanted}
        found = {item.key: item for item in answer.calls}
        return {call.call_id: found.get(call.call_id, not_rehearsed(call.call_id, "no_answer")) for call in wanted}

    async def _rehearsed(
        self, calls: list[TurnCall], run: RunRow, configuration: Configuration, epoch: int
    ) -> tuple[tuple[TurnCall, ...], Any]:
        current = without_stale_expectations(calls)
        for _ in range(2):
            found = await self.rehearse(current, run, configuration, epoch, run.actor)
            current = tuple(call.model_copy(update={"rehearsal": found.get(call.call_id)}) for call in current)
            # What an earlier call takes along is known only now; a later expectation of such a row cannot hold.
            loosened = without_stale_expectations(current)
            unmet = any(item.reason is RollbackReason.EXPECT for item in found.values())
            if not unmet or loosened == current:
                return loosened, None
            current = loosened
        return current, None

    async def _call(
        self,
        call: RequestedCall,
        run: RunRow,
        configuration: Configuration,
        denials: Mapping[str, RuleDenial],
        context: ToolContext,
    ) -> TurnCall:
        tool = self._registry.get(call.name)
        card = tool is not None and tool.needs_approval()
        base = TurnCall(
            call_id=call.call_id,
            tool=call.name,
            arguments=call.arguments,
            on_card=card,
            write=tool is not None and tool.counts_as_write(),
            would_write_live=card and run.actor.workspace_id == 0,
        )
        try:
            readied = self.ready(call, run, configuration)
        except ToolArgumentError as error:
            return base.model_copy(update={"refusal": error.text, "lines": bounded_lines([error.text])})
        if isinstance(readied, str):
            return base.model_copy(update={"on_card": False})
        if (denial := denials.get(call.call_id)) is not None:
            words = self.denial_words(denial, run.actor)
            refused = RefusedByRule(rule=denial.rule, code=denial.code, explanation=words)
            return base.model_copy(update={"refused_by_rule": refused, "lines": bounded_lines([words])})
        if not card:
            return base.model_copy(update={"asks": readied.tool.requires_input})
        return await self._planned(base, readied, context)

    async def _planned(self, base: TurnCall, readied: Readied, context: ToolContext) -> TurnCall:
        if not isinstance(readied.tool, WriteTool):
            return base.model_copy(update={"lines": (context.say(NO_PREVIEW),)})
        try:
            plan = await readied.tool.plan(readied.arguments, context)
        except PlanRefused as refusal:
            lines = bounded_lines([context.say(refusal.message, **refusal.params)], context.say(MORE_LINES))
            return base.model_copy(update={"refusal": refusal.text, "lines": lines})
        except RemoteError:
            raise
        except Exception as error:
            logger.error("preview failed", tool=base.tool, exc_info=error)
            return base.model_copy(update={"preview_failed": True, "lines": (context.say(PREVIEW_FAILED),)})
        return base.model_copy(
            update={
                "plan": plan,
                "lines": bounded_lines(plan.lines, context.say(MORE_LINES)),
                "structured": plan.structured,
                "affected": plan.affected,
                "language": plan.language,
            }
        )


def _rehearsed_request(call: TurnCall, registry: ToolRegistry) -> RehearsedCallRequest:
    tool = registry.get(call.tool)
    if call.plan is None or tool is None:
        raise ValueError("only a planned call is rehearsed")
    return RehearsedCallRequest(
        key=call.call_id,
        tool=call.tool,
        effect=tool.effect,
        write_target=call.plan.target,
        operations=list(call.plan.operations),
    )


def not_rehearsed(call_id: str, problem: str) -> RehearsedCall:
    """A call that could not be rehearsed, and why."""
    return RehearsedCall(key=call_id, outcome=CallOutcome.UNKNOWN, problem=problem)


def needs_card(turn: TurnState) -> bool:
    """Some call could be carried out, or a rule refuses it, so a person has to decide.

    A turn whose every write is impossible by itself (nothing there, wrong arguments) asks nobody.
    """
    return any(call.refusal is None for call in turn.card_calls())


def approved(calls: Iterable[TurnCall], ids: frozenset[str]) -> list[TurnCall]:
    """The approved calls in order."""
    return [call for call in calls if call.call_id in ids]
