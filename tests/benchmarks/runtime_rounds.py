"""The runtime's side of a tool round: the real runtime in this process, with a model that says what is written here."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from agent_runtime.approvals.preparation import call_scope
from agent_runtime.approvals.turns import TurnState
from agent_runtime.deps import Runtime, build_runtime
from agent_runtime.models.port import ModelReply, ModelRequest, RequestedCall
from agent_runtime.runs.models import RunRow
from agent_runtime.runs.states import read_state
from agent_runtime.settings import RuntimeSettings
from agent_runtime.worker import Worker
from remit_contracts.calls import ApplyRequest, ToolEffect
from remit_contracts.runs import Decision, DecisionRequest, RunStart, RunStatus
from remit_harness.stacks import TestStack
from remit_local.services import GATEWAY, runtime_environment
from service_kit.auth import Actor

TOOL = "update_content_element"
_PREFIX = "AGENT_RUNTIME_"


class TwoReplies:
    """A model without a network: one call with the user's words as the header, then a sentence."""

    def __init__(self) -> None:
        self.element = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next of the two."""
        last = request.messages[-1]
        if last.role == "tool":
            return ModelReply(content="The header was set.", input_tokens=10, output_tokens=5)
        arguments = {"uid": self.element, "fields": {"header": last.content}}
        call = RequestedCall(call_id="c1", name=TOOL, arguments=arguments)
        return ModelReply(calls=(call,), input_tokens=10, output_tokens=5)

    async def close(self) -> None:
        """Holds nothing."""


class RuntimeRounds:
    """Runs that wait for approval, and what follows it. The stack's own worker must not run meanwhile.

    Args:
        user_uid: whose runs they are.
    """

    def __init__(self, stack: TestStack, user_uid: int) -> None:
        self._user = user_uid
        self._model = TwoReplies()
        self._runtime: Runtime = build_runtime(_settings(stack), models=lambda _configuration: self._model)
        self._worker = Worker(self._runtime, "bench")

    async def start(self) -> None:
        """Begin to send wake-ups, as a worker's process does."""
        await self._runtime.start()

    async def stop(self) -> None:
        """Give back connections."""
        await self._runtime.stop()

    async def seconds(self, element: int, header: str) -> float:
        """One round: from the claim of the approved run up to the stored answer of the model."""
        run = await self._waiting(element, header)
        view = await self._runtime.runs.view(run.id, self._caller)
        if view.pending is None:
            raise RuntimeError("no card")
        decision = DecisionRequest(turn_digest=view.pending.turn_digest, decision=Decision.APPROVE)
        await self._runtime.approvals.decide(run.id, self._caller, decision)
        begin = time.perf_counter()
        claimed = await self._worker.claim()
        if claimed is None or claimed.id != run.id:
            raise RuntimeError("another run was queued")
        await self._worker.execute(claimed)
        seconds = time.perf_counter() - begin
        ended = await self._run(run.id)
        if ended.status is not RunStatus.COMPLETED:
            raise RuntimeError(f"the round did not end: {ended.status} {ended.error_code}")
        return seconds

    async def request(self, element: int, header: str) -> str:
        """The body of the ``apply`` the runtime would send now, for somebody else to send it; its own run is dropped."""
        run = await self._waiting(element, header)
        configuration = self._runtime.configurations.get(run.configuration)
        turn = await self._turn(run.id)
        if configuration is None or turn.calls[0].plan is None:
            raise RuntimeError("no plan")
        plan, shown = turn.calls[0].plan, turn.calls[0].shown
        request = ApplyRequest(
            run_id=run.id,
            lease_epoch=run.lease_epoch,
            actor=run.actor,
            scope=call_scope(run, configuration),
            scope_required=configuration.require_assignment_scope,
            tool=TOOL,
            effect=ToolEffect.WRITE,
            write_target=plan.target,
            operations=list(plan.operations),
            shown=None if shown is None else list(shown),
        )
        await self._runtime.runs.cancel(run.id, self._caller)
        return request.model_dump_json(by_alias=True)

    @property
    def _caller(self) -> Actor:
        return Actor(user_uid=self._user, service=GATEWAY)

    async def _waiting(self, element: int, header: str) -> RunRow:
        """A run at its card."""
        self._model.element = element
        body = {
            "actor": {"userUid": self._user, "workspaceId": 0, "locale": "en"},
            "configuration": "default",
            "messages": [{"role": "user", "content": header}],
        }
        started = await self._runtime.runs.start(RunStart.model_validate(body), self._caller, None)
        await self._worker.run_until_idle()
        run = await self._run(started.id)
        if run.status is not RunStatus.WAITING_FOR_APPROVAL:
            raise RuntimeError(f"no card: {run.status} {run.error_code}")
        return run

    async def _run(self, run_id: UUID) -> RunRow:
        async with self._runtime.database.read() as session:
            run = await self._runtime.journal.runs.get(session, run_id)
        if run is None:
            raise RuntimeError("the run is gone")
        return run

    async def _turn(self, run_id: UUID) -> TurnState:
        async with self._runtime.database.read() as session:
            rows = await self._runtime.journal.runs.states(session, run_id)
        turn = read_state(self._runtime.journal.cipher, rows).turn
        if turn is None:
            raise RuntimeError("no turn waits")
        return turn


@asynccontextmanager
async def running_rounds(stack: TestStack, user_uid: int) -> AsyncIterator[RuntimeRounds]:
    """Rounds in this process."""
    rounds = RuntimeRounds(stack, user_uid)
    await rounds.start()
    try:
        yield rounds
    finally:
        await rounds.stop()


def _settings(stack: TestStack) -> RuntimeSettings:
    """As the stack's own worker has them."""
    environment = runtime_environment(stack.stack.plan)
    values: dict[str, Any] = {
        name.removeprefix(_PREFIX).lower(): value for name, value in environment.items() if name.startswith(_PREFIX)
    }
    return RuntimeSettings(**values)
