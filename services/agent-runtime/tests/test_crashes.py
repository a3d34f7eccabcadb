"""A worker that dies at any point: no write happens twice, none is lost (T-23, S-58)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest
from remit_contracts.calls import CallOutcome
from runtime_support.models import ScriptedModel, asks, says, source
from runtime_support.stack import STATE_KEY, RuntimeStack, StartStack
from service_kit.outbox import EventTooLargeError
from sqlalchemy import text

TURN = asks(
    ("create_content_element_draft", {"page": 3, "bodytext": "New"}),
    ("update_content_element", {"uid": 5, "fields": {"header": "When we open"}}),
)


class Died(BaseException):
    """The process is gone: nothing of it is caught or cleaned up by the code under test."""


class DiesAt:
    """Dies before or after the n-th step that other processes could see."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.count = 0

    def point(self) -> None:
        self.count += 1
        if self.count == self.place:
            raise Died

    def around(self, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def wrapped(*args: Any, **options: Any) -> Any:
            self.point()
            result = await work(*args, **options)
            self.point()
            return result

        return wrapped


async def expire_leases(stack: RuntimeStack) -> None:
    async with stack.runtime.database.unit_of_work() as session:
        await session.execute(
            text("UPDATE run SET lease_until = clock_timestamp() - interval '1 s' WHERE status = 'running'")
        )
        await session.execute(text("UPDATE run SET available_at = clock_timestamp() WHERE status = 'queued'"))


async def run_dying(stack: RuntimeStack, place: int) -> bool:
    """Whether a worker died at this place while it did what there was to do."""
    dies = DiesAt(place)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (stack.runtime.journal, "write"),
            (stack.runtime.store, "apply"),
            (stack.runtime.store, "resolve"),
        ):
            patch.setattr(owner, name, dies.around(getattr(owner, name)))
        try:
            await stack.worker().run_until_idle()
        except Died:
            return True
    return False


async def check_whole(stack: RuntimeStack, run_id: UUID) -> None:
    """The run is done, each write happened once, and everything about it is recorded once."""
    run = await stack.view(run_id)
    assert (run["status"], run["terminationReason"]) == ("completed", "completed")
    committed = [call_id for call_id, result in stack.store.outcomes.items() if result.outcome is CallOutcome.COMMITTED]
    assert len(committed) == 2
    created = [row for uid, row in stack.store.rows.tables["tt_content"].items() if uid >= 1000]
    assert [row["bodytext"] for row in created] == ["New"]
    assert stack.store.rows.tables["tt_content"][5]["header"] == "When we open"
    steps = await stack.steps(run_id)
    assert [step["sequence"] for step in steps] == list(range(1, len(steps) + 1))
    for kind in ("tool", "tool_write", "tool_changes"):
        assert [step["callId"] for step in steps if step["kind"] == kind] == ["c1", "c2"]
    assert not any(step["payload"]["isError"] for step in steps if step["kind"] == "tool")
    named = {step["payload"]["storeCallId"] for step in steps if step["kind"] == "tool"}
    assert named == {str(call_id) for call_id in committed}


@pytest.mark.req("T-23", "S-58", "W-03")
async def test_a_worker_that_dies_at_any_point_leaves_a_whole_run(start_stack: StartStack) -> None:
    place, deaths = 1, 0
    async with start_stack(parts={"models": source(ScriptedModel([TURN, says("done")]))}) as stack:
        rows = stack.store.rows.copy()
        while True:
            stack.store.rows = rows.copy()
            stack.store.outcomes.clear()
            run_id = await stack.start("two writes")
            await stack.run_to_pause(run_id)
            assert (await stack.decide(run_id, decision="approve")).status_code == 202
            died = await run_dying(stack, place)
            deaths += died
            await expire_leases(stack)
            await stack.worker().run_until_idle()
            await check_whole(stack, run_id)
            if not died:
                break
            place += 1
    # Claim, two calls of four points each, their records, the next round and the end: fewer would mean an untested place.
    assert deaths >= 14


@pytest.mark.req("T-23", "T-02")
async def test_a_worker_that_dies_before_the_card_suspends_the_run_later(start_stack: StartStack) -> None:
    place = 1
    async with start_stack(parts={"models": source(ScriptedModel([TURN, says("done")]))}) as stack:
        while True:
            run_id = await stack.start("two writes")
            died = await run_dying(stack, place)
            await expire_leases(stack)
            run = await stack.run_to_pause(run_id)
            assert run["status"] == "waiting_for_approval"
            assert [call["callId"] for call in run["pending"]["calls"]] == ["c1", "c2"]
            assert not stack.store.applied
            await stack.request("POST", f"/v1/runs/{run_id}/cancel")
            if not died:
                break
            place += 1
    assert place > 4


@pytest.mark.req("T-23", "S-58")
@pytest.mark.parametrize("how", ["lost", "cut"])
async def test_an_answer_that_is_lost_is_asked_for_by_id(start_stack: StartStack, how: str) -> None:
    async with start_stack(parts={"models": source(ScriptedModel([TURN, says("done")]))}) as stack:
        run_id = await stack.start("two writes")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        stack.store.fail("POST .*/apply", how, times=2)
        await stack.worker().run_until_idle()
        await check_whole(stack, run_id)
        assert any(line.endswith("/resolve") for line in stack.store.requests)


@pytest.mark.req("T-23", "T-24")
async def test_a_store_that_is_away_gives_the_run_back(start_stack: StartStack) -> None:
    parts = {"models": source(ScriptedModel([TURN, says("done")]))}
    async with start_stack(parts=parts, store_patience=0.0) as stack:
        run_id = await stack.start("two writes")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        stack.store.fail("POST .*/apply", "lost")
        stack.store.fail("POST .*/resolve", "answer", status=503)
        run = await stack.run_to_pause(run_id)
        assert (run["status"], run["errorCode"]) == ("queued", "outcome_open")
        await expire_leases(stack)
        await stack.worker().run_until_idle()
        await check_whole(stack, run_id)


@pytest.mark.req("S-58", "T-24", "T-07", "C-20")
async def test_what_nobody_can_tell_is_said(start_stack: StartStack) -> None:
    parts = {"models": source(ScriptedModel([TURN, says("done")]))}
    async with start_stack(parts=parts, store_patience=0.0) as stack:
        run_id = await stack.start("two writes")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        stack.store.fail("POST .*/apply", "lost")
        stack.store.fail("POST .*/resolve", "answer", status=503, times=99)
        for _ in range(6):
            await stack.worker().run_until_idle()
            await expire_leases(stack)
        run = await stack.view(run_id)
        assert (run["status"], run["terminationReason"]) == ("failed", "retries_exhausted")
        (tool,) = await stack.steps(run_id, "tool")
        assert tool["payload"]["isError"]
        (changes,) = await stack.steps(run_id, "tool_changes")
        assert changes["payload"]["coverage"] == "not_captured"


@pytest.mark.req("T-22", "T-23")
async def test_a_zombie_writes_nothing_once_another_worker_has_the_run(start_stack: StartStack) -> None:
    async with start_stack(parts={"models": source(ScriptedModel([TURN, says("done")]))}) as stack:
        run_id = await stack.start("two writes")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        held = stack.store.fail("POST .*/apply", "hold")
        zombie = asyncio.create_task(stack.worker().run_until_idle())
        await asyncio.wait_for(held.reached.wait(), 30)
        await expire_leases(stack)
        await stack.worker().run_until_idle()
        await check_whole(stack, run_id)
        before = len(await stack.steps(run_id))
        held.release.set()
        await zombie
        await check_whole(stack, run_id)
        assert len(await stack.steps(run_id)) == before


@pytest.mark.chaos
@pytest.mark.req("T-23", "T-22", "S-09")
async def test_a_killed_process_leaves_neither_a_lost_nor_a_doubled_write(
    start_stack: StartStack, database_url: str
) -> None:
    async with start_stack(lease_seconds=1.0, poll_interval=0.1) as stack:
        actor = {"assignmentScope": {"pages": [{"page": 3, "depth": 2}]}}
        run_id = await stack.start("change the header of element 5 to When we open", actor=actor)
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        held = stack.store.fail("POST .*/apply", "hold")
        environment = {
            **os.environ,
            "AGENT_RUNTIME_DATABASE_URL": database_url,
            "AGENT_RUNTIME_STATE_KEY": STATE_KEY,
            "AGENT_RUNTIME_SIGNING_KEY": stack.private_pem,
            "AGENT_RUNTIME_CONTENT_STORE_URL": stack.store_url,
            "AGENT_RUNTIME_LEASE_SECONDS": "1.0",
            "AGENT_RUNTIME_POLL_INTERVAL": "0.1",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from agent_runtime.cli import main; main()",
            "worker",
            "--no-relay",
            env=environment,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await asyncio.wait_for(held.reached.wait(), 60)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        held.release.set()
        worker = asyncio.create_task(stack.worker().run())
        try:
            async with asyncio.timeout(60):
                while (await stack.view(run_id))["status"] != "completed":  # noqa: ASYNC110 - another process's fact
                    await asyncio.sleep(0.05)
        finally:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
        committed = [result for result in stack.store.outcomes.values() if result.outcome is CallOutcome.COMMITTED]
        assert len(committed) == 1
        # The scope went through the API's process, the killed worker's and this one.
        sent = [request.scope for _, request in stack.store.applied if request.scope is not None]
        assert [[root.depth for root in scope.pages] for scope in sent] == [[2]] * len(stack.store.applied)
        assert stack.store.rows.tables["tt_content"][5]["header"] == "When we open"
        assert len(await stack.steps(run_id, "tool_write")) == 1


@pytest.mark.req("T-10")
@pytest.mark.parametrize(("kind", "status"), [("tool_write", "failed"), ("request", "completed")])
async def test_a_write_whose_step_cannot_be_stored_fails_the_run(
    start_stack: StartStack, monkeypatch: pytest.MonkeyPatch, kind: str, status: str
) -> None:
    async with start_stack(parts={"models": source(ScriptedModel([TURN, says("done")]))}) as stack:
        run_id = await stack.start("two writes")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        steps = stack.runtime.journal.steps
        insert = steps.insert

        async def refuses(session: Any, drafts: Any) -> None:
            if any(step.kind == kind and "notStored" not in step.payload for step in drafts):
                raise EventTooLargeError("refused on purpose")
            await insert(session, drafts)

        monkeypatch.setattr(steps, "insert", refuses)
        run = await stack.run_to_pause(run_id)
        assert run["status"] == status
        if status == "failed":
            assert (run["terminationReason"], run["retryable"]) == ("step_not_stored", False)
            assert await stack.worker().run_until_idle() == 0
