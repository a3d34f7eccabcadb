"""Runs: start, lease, requeue, cancel, limits, events (T-01, T-11, T-12, T-20 to T-28, T-70)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agent_runtime.events.relaying import run_relay
from agent_runtime.models.port import ModelFailed
from agent_runtime.runs.retention import Purged, purge_old
from remit_contracts.events import RUN_STEPS_TOPIC
from runtime_support.models import ScriptedModel, asks, says, source
from runtime_support.stack import RuntimeStack, StartStack
from service_kit.bus import ReceivedMessage
from service_kit.bus.memory import MemoryBus
from sqlalchemy import text

READ = asks(("get_pagetree", {}))


def scripted(*replies: Any) -> dict[str, Any]:
    return {"models": source(ScriptedModel(replies))}


def body(**values: Any) -> dict[str, Any]:
    return {
        "actor": {"userUid": 7},
        "configuration": "default",
        "messages": [{"role": "user", "content": "list pages"}],
        **values,
    }


@pytest.mark.req("T-27")
async def test_the_same_key_starts_one_run(stack: RuntimeStack) -> None:
    key = {"Idempotency-Key": "message-1"}
    first, second = [await stack.request("POST", "/v1/runs", json=body(), headers=key) for _ in range(2)]
    assert first.status_code == second.status_code == 201
    assert first.json()["id"] == second.json()["id"]
    other = await stack.request("POST", "/v1/runs", json=body(tools=["get_pagetree"]), headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    foreign = await stack.request("POST", "/v1/runs", 8, json=body(actor={"userUid": 8}), headers=key)
    assert foreign.json()["id"] != first.json()["id"]


@pytest.mark.req("T-20")
@pytest.mark.parametrize(
    ("wrong", "status", "code"),
    [
        (body(configuration="none"), 422, "configuration_unknown"),
        (body(actor={"userUid": 8}), 403, "actor_mismatch"),
        (body(tools=["no_such"]), 422, "tool_unknown"),
        (body(messages=[]), 422, "invalid_request"),
        (body(extra=1), 422, "invalid_request"),
        (body(actor={"userUid": "seven"}), 422, "invalid_request"),
        ([], 422, "invalid_request"),
    ],
)
async def test_a_start_that_makes_no_sense(stack: RuntimeStack, wrong: Any, status: int, code: str) -> None:
    answer = await stack.request("POST", "/v1/runs", json=wrong)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert await stack.worker().run_until_idle() == 0


async def test_nobody_gets_in_without_a_token(stack: RuntimeStack) -> None:
    for method, path in (("GET", f"/v1/runs/{uuid4()}"), ("POST", "/v1/runs"), ("GET", "/v1/tools")):
        answer = await stack.http.request(method, path, json=body())
        assert (answer.status_code, answer.json()["code"]) == (401, "token_missing")
        forged = await stack.http.request(method, path, json=body(), headers={"Authorization": "Bearer x.y.z"})
        assert forged.status_code == 401
    nonsense = await stack.request("POST", "/v1/runs", content=b"{", headers={"Content-Type": "application/json"})
    assert nonsense.json()["code"] == "unreadable_body"
    assert (await stack.request("GET", "/v1/runs/7")).status_code == 422


async def test_what_is_on_offer_can_be_read(stack: RuntimeStack) -> None:
    (default,) = (await stack.request("GET", "/v1/configurations")).json()["configurations"]
    assert (default["name"], default["demo"]) == ("default", True)
    tools = {tool["name"]: tool for tool in (await stack.request("GET", "/v1/tools")).json()["tools"]}
    assert tools["move_page"]["needsApproval"]
    assert not tools["get_pagetree"]["needsApproval"]
    assert "uid" in tools["move_page"]["parameters"]["properties"]


@pytest.mark.req("T-01")
async def test_at_the_cap_one_closing_answer_without_tools(start_stack: StartStack, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[configurations.short]\nmax_rounds = 2\n")
    model = ScriptedModel([READ, READ, says("closing")])
    async with start_stack(parts={"models": source(model)}, configurations=path) as stack:
        run_id = await stack.start("go", configuration="short")
        run = await stack.run_to_pause(run_id)
        assert (run["status"], run["terminationReason"], run["truncated"]) == ("completed", "max_iterations", True)
        assert run["finalContent"] == "closing"
        assert [bool(request.tools) for request in model.requests] == [True, True, False]
        assert run["usage"] == {"rounds": 3, "inputTokens": 30, "outputTokens": 15}


@pytest.mark.req("T-12", "T-11")
async def test_budget_and_window_end_a_run_without_a_model_call(start_stack: StartStack, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(
        "[configurations.poor]\nbudget = {max_total_tokens = 15}\n[configurations.narrow]\ncontext_tokens = 256\n"
    )
    model = ScriptedModel([READ, says("never")])
    async with start_stack(parts={"models": source(model)}, configurations=path) as stack:
        poor = await stack.run_to_pause(await stack.start("go", configuration="poor"))
        assert (poor["status"], poor["terminationReason"]) == ("completed", "budget_exhausted")
        assert len(model.requests) == 1
        narrow = await stack.run_to_pause(await stack.start("go", configuration="narrow"))
        assert (narrow["status"], narrow["terminationReason"]) == ("completed", "context_truncated")
        assert len(model.requests) == 1


@pytest.mark.req("T-24")
async def test_a_passing_failure_is_tried_again_and_then_given_up(start_stack: StartStack) -> None:
    away = [ModelFailed("provider_unavailable", passing=True) for _ in range(9)]
    async with start_stack(parts=scripted(*away, says("late")), requeue_limit=2) as stack:
        run_id = await stack.start("go")
        for attempt in range(2):
            run = await stack.run_to_pause(run_id)
            assert (run["status"], run["errorCode"]) == ("queued", "provider_unavailable")
            async with stack.runtime.database.unit_of_work() as session:
                wait = await session.execute(
                    text("SELECT extract(epoch FROM available_at - clock_timestamp())::float FROM run")
                )
                assert 30 * 2**attempt - 15 < wait.scalar_one() <= 30 * 2**attempt
                await session.execute(text("UPDATE run SET available_at = clock_timestamp()"))
        run = await stack.run_to_pause(run_id)
        assert (run["status"], run["terminationReason"], run["retryable"]) == ("failed", "retries_exhausted", True)


@pytest.mark.req("T-24")
async def test_a_final_failure_is_not_tried_again(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted(ModelFailed("provider_rejected", passing=False), says("never"))) as stack:
        run = await stack.run_to_pause(await stack.start("go"))
        assert (run["status"], run["terminationReason"]) == ("failed", "provider_failed")


@pytest.mark.req("T-24", "T-22")
async def test_a_run_whose_workers_keep_dying_is_given_up(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted(says("hello")), requeue_limit=2) as stack:
        run_id = await stack.start("go")
        for _ in range(3):
            assert await stack.worker().claim() is not None
            async with stack.runtime.database.unit_of_work() as session:
                await session.execute(text("UPDATE run SET lease_until = clock_timestamp() - interval '1 s'"))
            assert await stack.worker().reap() == 1
        run = await stack.run_to_pause(run_id)
        assert (run["status"], run["terminationReason"]) == ("failed", "retries_exhausted")


@pytest.mark.req("T-22", "T-21")
async def test_a_run_is_claimed_once(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted(says("hello"))) as stack:
        await stack.start("go")
        claims = await asyncio.gather(*(stack.worker().claim() for _ in range(4)))
        (run,) = [claim for claim in claims if claim is not None]
        assert run.lease_epoch == 1
        assert await stack.worker().reap() == 0


@pytest.mark.req("T-28", "T-21")
async def test_cancel_reaches_a_running_model_call(start_stack: StartStack) -> None:
    model = ScriptedModel([says("never")])
    model.hold = asyncio.Event()
    async with start_stack(parts={"models": source(model)}, lease_seconds=0.3) as stack:
        run_id = await stack.start("go")
        working = asyncio.create_task(stack.worker().run_until_idle())
        await asyncio.wait_for(model.asked.wait(), 30)
        assert (await stack.request("POST", f"/v1/runs/{run_id}/cancel")).status_code == 202
        await asyncio.wait_for(working, 30)
        run = await stack.view(run_id)
        assert (run["status"], run["terminationReason"]) == ("cancelled", "cancelled")


@pytest.mark.req("T-28", "T-21", "T-25")
async def test_cancel_of_a_waiting_run_ends_it_for_good(stack: RuntimeStack) -> None:
    run_id = await stack.start("set the title of page 3 to X")
    digest = (await stack.run_to_pause(run_id))["pending"]["turnDigest"]
    cancelled = (await stack.request("POST", f"/v1/runs/{run_id}/cancel")).json()
    assert cancelled["status"] == "cancelled"
    late = {"turnDigest": digest, "decision": "approve"}
    answer = await stack.request("POST", f"/v1/runs/{run_id}/decision", json=late)
    assert (answer.status_code, answer.json()["code"]) == (409, "run_not_waiting")
    assert answer.json()["run"]["status"] == "cancelled"
    again = (await stack.request("POST", f"/v1/runs/{run_id}/cancel")).json()
    assert again["status"] == "cancelled"
    async with stack.runtime.database.read() as session:
        assert (await session.execute(text("SELECT count(*) FROM run_state"))).scalar_one() == 0


@pytest.mark.req("T-25")
async def test_nothing_of_a_transcript_is_stored_in_the_clear_and_nothing_stays(stack: RuntimeStack) -> None:
    run_id = await stack.start("set the title of page 3 to 'Marker-4711'")
    await stack.run_to_pause(run_id)
    async with stack.runtime.database.read() as session:
        for table in ("run", "run_state", "run_step", "outbox"):
            rows = await session.execute(text(f"SELECT t::text AS row FROM {table} t"))
            assert not [row for row in rows if "Marker-4711" in row.row], table
    await stack.decide(run_id, decision="approve")
    await stack.run_to_pause(run_id)
    async with stack.runtime.database.read() as session:
        assert (await session.execute(text("SELECT count(*) FROM run_state"))).scalar_one() == 0


@pytest.mark.req("T-25")
async def test_a_damaged_state_is_refused_and_the_run_stays(stack: RuntimeStack) -> None:
    run_id = await stack.start("set the title of page 3 to X")
    digest = (await stack.run_to_pause(run_id))["pending"]["turnDigest"]
    async with stack.runtime.database.unit_of_work() as session:
        await session.execute(text("UPDATE run_state SET sealed = sealed || '\\x00' WHERE kind = 'turn'"))
    decision = {"turnDigest": digest, "decision": "approve"}
    answer = await stack.request("POST", f"/v1/runs/{run_id}/decision", json=decision)
    assert (answer.status_code, answer.json()["code"]) == (409, "state_unreadable")
    async with stack.runtime.database.read() as session:
        status = (await session.execute(text("SELECT status FROM run"))).scalar_one()
    assert status == "waiting_for_approval"


@pytest.mark.req("T-53", "T-73")
@pytest.mark.parametrize(("level", "shown"), [("metadata", False), ("full", True)])
async def test_the_privacy_level_decides_what_a_step_keeps(
    start_stack: StartStack, tmp_path: Path, level: str, shown: bool
) -> None:
    path = tmp_path / "c.toml"
    path.write_text(f"[configurations.private]\nprivacy_level = '{level}'\n")
    async with start_stack(configurations=path) as stack:
        run_id = await stack.start("set the title of page 3 to 'Marker-4711'", configuration="private")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        await stack.run_to_pause(run_id)
        steps = await stack.steps(run_id)
        assert ("Marker-4711" in str(steps)) is shown
        (tool,) = [step for step in steps if step["kind"] == "tool"]
        assert tool["payload"]["toolName"] == "update_page_metadata"
        assert not tool["payload"]["isError"]


@pytest.mark.req("T-70")
async def test_every_step_becomes_one_event_in_its_order(stack: RuntimeStack) -> None:
    conversation = uuid4()
    run_id = await stack.start("list pages", conversationId=str(conversation))
    await stack.run_to_pause(run_id)
    steps = await stack.steps(run_id)
    bus = MemoryBus()
    seen: list[ReceivedMessage] = []

    async def take(message: ReceivedMessage) -> None:
        seen.append(message)

    relay = asyncio.create_task(run_relay(stack.runtime, bus=bus))
    consumer = asyncio.create_task(bus.subscribe([RUN_STEPS_TOPIC], take, group="test").run())
    try:
        async with asyncio.timeout(30):
            while len(seen) < len(steps):  # noqa: ASYNC110 - the bus has no event for this
                await asyncio.sleep(0.01)
    finally:
        relay.cancel()
        consumer.cancel()
        await asyncio.gather(relay, consumer, return_exceptions=True)
    assert {message.key for message in seen} == {str(conversation)}
    headers = [dict(message.headers) for message in seen]
    assert [int(header["ce_sequence"]) for header in headers] == [step["sequence"] for step in steps]
    assert headers[-1]["ce_type"] == "io.remit.run-step.status.v1"


@pytest.mark.req("T-55")
async def test_what_is_old_is_removed_and_counted(stack: RuntimeStack) -> None:
    old = await stack.start("list pages")
    waiting = await stack.start("set the title of page 3 to X")
    await stack.worker().run_until_idle()
    fresh = await stack.start("list pages", user_uid=8)
    settings = stack.runtime.settings
    assert await purge_old(stack.runtime.journal, settings) == Purged(0, 0, 0, 0)
    async with stack.runtime.database.unit_of_work() as session:
        await session.execute(
            text(
                "UPDATE run SET settled_at = settled_at - interval '31 days', waiting_since = waiting_since - interval '91 days'"
            )
        )
    assert await purge_old(stack.runtime.journal, settings) == Purged(cancelled=1, runs=1, governance=0, keys=0)
    assert (await stack.request("GET", f"/v1/runs/{old}")).status_code == 404
    assert (await stack.view(waiting))["status"] == "cancelled"
    assert (await stack.view(fresh, user_uid=8))["status"] == "queued"


@pytest.mark.req("T-23", "T-22")
async def test_a_worker_that_is_stopped_hands_its_run_over(start_stack: StartStack) -> None:
    model = ScriptedModel([says("hello")])
    model.hold = asyncio.Event()
    async with start_stack(parts={"models": source(model)}) as stack:
        run_id = await stack.start("go")
        working = asyncio.create_task(stack.worker().run())
        await asyncio.wait_for(model.asked.wait(), 30)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        assert (await stack.view(run_id))["status"] == "queued"
        model.hold.set()
        assert (await stack.run_to_pause(run_id))["status"] == "completed"
