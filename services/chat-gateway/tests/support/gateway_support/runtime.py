"""An agent-runtime that does what a test tells it, behind the real contract."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import UUID

from fastapi import FastAPI, Header
from remit_contracts.runs import (
    AnswerRequest,
    DecisionRequest,
    PendingTurn,
    RunEventsAnswer,
    RunEventsQuery,
    RunStart,
    RunStatus,
    RunView,
    StepPage,
)
from service_kit.app import create_app
from service_kit.auth import Actor, AssertionVerifier, Authenticator, CallerTable, KeySet, require_actor
from service_kit.clock import utc_now
from service_kit.ids import uuid7
from service_kit.problems import ProblemError
from service_kit.routing import Router
from service_kit.settings import ServiceSettings

from gateway_support.steps import Steps


class RunNotFoundError(ProblemError):
    """Not there, or somebody else's."""

    code = "run_not_found"
    status = 404
    title = "No such run"


class TurnStaleError(ProblemError):
    """Another card waits."""

    code = "turn_stale"
    status = 409
    title = "Another card waits"


class NotWaitingError(ProblemError):
    """Nothing waits."""

    code = "run_not_waiting"
    status = 409
    title = "Nothing waits"


class BrokenError(ProblemError):
    """A fault on purpose."""

    code = "internal_error"
    status = 500
    title = "Broken on purpose"


@dataclass
class FakeRun:
    """One run: its steps, and what its view says."""

    owner: int
    start: RunStart
    steps: Steps
    status: RunStatus = RunStatus.QUEUED
    pending: PendingTurn | None = None
    final: str | None = None
    error_code: str | None = None
    hidden: bool = False


@dataclass
class FakeRuntime:
    """Runs by id, what was asked, and what is refused on purpose."""

    runs: dict[UUID, FakeRun] = field(default_factory=dict)
    keys: dict[str, UUID] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    decisions: list[tuple[UUID, DecisionRequest]] = field(default_factory=list)
    answers: list[tuple[UUID, AnswerRequest]] = field(default_factory=list)
    refuse: dict[str, ProblemError] = field(default_factory=dict)
    lose_answers: int = 0
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    late: dict[str, asyncio.Event] = field(default_factory=dict)

    def only(self) -> tuple[UUID, FakeRun]:
        """The newest run."""
        return list(self.runs.items())[-1]

    def owned(self, run: UUID, actor: Actor) -> FakeRun:
        """The actor's run."""
        found = self.runs.get(run)
        if found is None or found.owner != actor.user_uid or found.hidden:
            raise RunNotFoundError
        return found

    async def wait(self, name: str) -> None:
        """Keep the caller waiting until the test lets it go on."""
        if name in self.late:
            await self.late[name].wait()

    def counted(self, name: str) -> None:
        """Note a call, and fail it where the test wants that."""
        self.calls[name] += 1
        if name in self.refuse:
            raise self.refuse[name]


def view_of(run_id: UUID, run: FakeRun) -> RunView:
    """The run as its reader sees it."""
    return RunView(
        id=run_id,
        status=run.status,
        configuration=run.start.configuration,
        conversation_id=run.start.conversation_id,
        owner_uid=run.owner,
        segment=run.steps.segment,
        last_sequence=len(run.steps.all),
        final_content=run.final,
        error_code=run.error_code,
        pending=run.pending,
        created_at=utc_now(),
    )


CALLER = Annotated[Actor, require_actor("runs")]


def runtime_app(settings: ServiceSettings, fake: FakeRuntime, gateway_keys: KeySet) -> FastAPI:
    """The application; assertions of the gateway are verified for real."""
    router = Router(prefix="/v1")

    @router.post("/runs", status_code=201)
    async def start(body: RunStart, actor: CALLER, idempotency_key: Annotated[str, Header()]) -> RunView:
        fake.counted("start")
        known = fake.keys.get(idempotency_key)
        if known is None:
            known = fake.keys[idempotency_key] = uuid7()
            fake.runs[known] = FakeRun(actor.user_uid, body, Steps(known))
        elif fake.runs[known].start != body:
            raise TurnStaleError
        if fake.lose_answers:
            fake.lose_answers -= 1
            raise BrokenError
        return view_of(known, fake.runs[known])

    @router.get("/runs/{run}")
    async def view(run: UUID, actor: CALLER) -> RunView:
        fake.counted("view")
        return view_of(run, fake.owned(run, actor))

    @router.post("/runs:events")
    async def events(body: RunEventsQuery, actor: CALLER) -> RunEventsAnswer:
        fake.counted("events")
        pages = []
        for run in body.runs:
            found = fake.runs.get(run)
            if found is None or found.owner != actor.user_uid or found.hidden:
                continue
            after = body.after.get(str(run), 0)
            steps = tuple(step for step in found.steps.all if step.sequence > after)
            pages.append(StepPage(run_id=run, status=found.status, last_sequence=len(found.steps.all), steps=steps))
        return RunEventsAnswer(pages=tuple(pages), unreadable=len(body.runs) - len(pages))

    _for_people(router, fake)
    authenticator = Authenticator(
        services=AssertionVerifier("agent-runtime", {"chat-gateway": gateway_keys}),
        callers=CallerTable({"chat-gateway": {"runs"}}),
    )
    return create_app("agent-runtime", settings, [router], state={"authenticator": authenticator})


def _for_people(router: Router, fake: FakeRuntime) -> None:
    """Routes that act for a person."""

    @router.post("/runs/{run}/decision", status_code=202)
    async def decide(run: UUID, body: DecisionRequest, actor: CALLER) -> RunView:
        fake.counted("decision")
        await fake.wait("before decision")
        found = fake.owned(run, actor)
        if found.pending is None:
            raise NotWaitingError(members={"run": view_of(run, found).model_dump(mode="json")})
        if body.turn_digest != found.pending.turn_digest:
            raise TurnStaleError(members={"pending": found.pending.model_dump(mode="json")})
        fake.decisions.append((run, body))
        fake.decided.set()
        found.pending, found.status = None, RunStatus.RUNNING
        await fake.wait("after decision")
        return view_of(run, found)

    @router.post("/runs/{run}/answer", status_code=202)
    async def answer(run: UUID, body: AnswerRequest, actor: CALLER) -> RunView:
        fake.counted("answer")
        found = fake.owned(run, actor)
        fake.answers.append((run, body))
        found.pending, found.status = None, RunStatus.RUNNING
        return view_of(run, found)

    @router.post("/runs/{run}/cancel", status_code=202)
    async def cancel(run: UUID, actor: CALLER) -> RunView:
        fake.counted("cancel")
        return view_of(run, fake.owned(run, actor))

    @router.get("/configurations")
    async def configurations(_actor: CALLER) -> dict[str, Any]:
        fake.counted("configurations")
        return {"configurations": [{"name": "default", "label": "Demo"}]}
