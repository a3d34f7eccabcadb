from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from chat_gateway.consumer import run_steps_topics
from chat_gateway.deadletters.service import list_dead_letters, replay_dead_letters
from gateway_support.runtime import BrokenError, FakeRun
from gateway_support.stack import STRANGER, Stack
from gateway_support.steps import Steps, message_of
from gateway_support.store import visible
from remit_contracts.events import RUN_STEPS_TOPIC
from remit_contracts.runs import RunStatus
from service_kit.bus import Message
from service_kit.ids import uuid7
from sqlalchemy import text


async def begun(stack: Stack) -> tuple[UUID, UUID, FakeRun]:
    stack.store.show(*(visible("pages", uid) for uid in range(1, 20)))
    conversation = await stack.conversation()
    run_id, run = await stack.say(conversation)
    return conversation, run_id, run


async def stored_sequences(stack: Stack, run_id: UUID) -> list[int]:
    async with stack.database.read() as session:
        found = await session.scalars(
            text("SELECT sequence FROM run_step WHERE run_id = :run ORDER BY sequence"), {"run": run_id}
        )
        return list(found)


async def keys(stack: Stack, conversation: UUID) -> list[str]:
    return [row["key"] for row in (await stack.changes(conversation))["rows"]]


def write(run: FakeRun, uid: int) -> None:
    run.steps.whole_write("update_page_metadata", f"c{uid}", "pages", uid)


async def test_an_event_that_comes_again_changes_nothing(stack: Stack) -> None:
    conversation, run_id, run = await begun(stack)
    write(run, 3)
    await stack.finish(run_id)
    before = await stack.messages(conversation)
    for step in run.steps.all:
        for event_id in (uuid7(), uuid7()):
            await stack.bus.publish(message_of(step, conversation, run.owner, event_id))
    await stack.settle()
    assert await stack.messages(conversation) == before
    assert await keys(stack, conversation) == ["pages:3"]
    assert await stored_sequences(stack, run_id) == [1, 2, 3, 4]


async def test_a_gap_is_filled_from_the_events_api(stack: Stack) -> None:
    conversation, run_id, run = await begun(stack)
    write(run, 3)
    write(run, 4)
    await stack.publish(run_id, skip=(2, 3, 4))
    await stack.settle()
    assert await stored_sequences(stack, run_id) == [1, 2, 3, 4, 5, 6]
    assert await keys(stack, conversation) == ["pages:4", "pages:3"]
    assert stack.runtime.calls["events"] >= 1


async def test_a_lost_tail_is_found_by_comparing_unfinished_runs(stack: Stack) -> None:
    conversation, run_id, run = await begun(stack)
    write(run, 3)
    await stack.publish(run_id)
    await stack.settle()
    write(run, 4)
    run.status, run.final = RunStatus.COMPLETED, "Done."
    run.steps.status("completed")
    # Nothing of it reaches the topic: the broker lost its memory.
    stack.bus.broker.forget()
    assert await keys(stack, conversation) == ["pages:3"]
    assert await stack.consumer.refill.check() == 4
    assert await keys(stack, conversation) == ["pages:4", "pages:3"]
    poll = await stack.messages(conversation)
    assert poll["conversation"]["status"] == "completed"
    assert poll["messages"][-1]["content"] == "Done."
    # A finished run is not asked about again.
    asked = stack.runtime.calls["events"]
    assert await stack.consumer.refill.check() == 0
    assert stack.runtime.calls["events"] == asked


async def test_joining_refills_what_was_lost_before(stack: Stack) -> None:
    conversation, run_id, run = await begun(stack)
    write(run, 3)
    stack.published[run_id] = len(run.steps.all)
    await stack.bus.publish(message_of(Steps().add("llm"), None, run.owner))
    await stack.settle()
    assert await keys(stack, conversation) == ["pages:3"]


async def test_the_first_event_may_come_before_the_answer_to_the_start(stack: Stack) -> None:
    stack.runtime.lose_answers = 1
    conversation = await stack.conversation()
    answer = await stack.request("POST", f"/conversations/{conversation}/messages", {"content": "Hello"})
    assert answer.json()["status"] == "starting"
    run_id, run = stack.runtime.only()
    write(run, 3)
    await stack.finish(run_id, "Done.")
    poll = await stack.messages(conversation)
    assert poll["conversation"]["status"] == "completed"
    assert [m["run"] for m in poll["messages"]] == [str(run_id), str(run_id)]
    assert await stack.services.starter.retry_due() == 0
    assert poll["changesAvailable"] is True


async def test_events_of_others_runs_and_conversations_are_left_alone(stack: Stack) -> None:
    conversation, run_id, _ = await begun(stack)
    foreign = Steps()
    foreign.whole_write("update_page_metadata", "c1", "pages", 9)
    for step in foreign.all:
        # Somebody else's run, no conversation, a conversation nobody has, a run nobody started here.
        await stack.bus.publish(message_of(step, conversation, STRANGER))
        await stack.bus.publish(message_of(step, None, 7))
        await stack.bus.publish(message_of(step, uuid7(), 7))
        await stack.bus.publish(message_of(step, conversation, 7))
    await stack.settle()
    assert await keys(stack, conversation) == []
    assert await stored_sequences(stack, foreign.run) == []
    other = await stack.conversation()
    own = Steps(run_id)
    await stack.bus.publish(message_of(own.add("tool_changes"), other, 7))
    await stack.settle()
    assert await stored_sequences(stack, run_id) == []


async def test_a_service_that_is_away_delays_the_event_and_loses_nothing(stack: Stack) -> None:
    conversation, run_id, run = await begun(stack)
    write(run, 3)
    run.status, run.final = RunStatus.COMPLETED, "Done."
    run.steps.status("completed")
    stack.runtime.refuse["view"] = BrokenError()
    await stack.publish(run_id)

    async def heal() -> None:
        while stack.runtime.calls["view"] < 4:  # noqa: ASYNC110 - a counter sets no event
            await asyncio.sleep(0.01)
        del stack.runtime.refuse["view"]

    await asyncio.gather(stack.settle(), heal())
    poll = await stack.messages(conversation)
    assert poll["messages"][-1]["content"] == "Done."
    assert not [place for place in stack.bus.broker.logs if place[0].endswith(".dlq")] or not any(
        log for place, log in stack.bus.broker.logs.items() if place[0].endswith(".dlq")
    )


BAD: list[Message] = [
    Message(RUN_STEPS_TOPIC, "k", b"not an event"),
    Message(RUN_STEPS_TOPIC, "k", b"{}", (("ce_id", "x"),)),
]


async def test_poison_goes_to_the_dead_letters_and_the_rest_goes_on(stack: Stack) -> None:
    conversation, run_id, run = await begun(stack)
    await stack.bus.ensure_topics(run_steps_topics())
    good = message_of(run.steps.add("llm"), conversation, run.owner)
    broken = Message(good.topic, good.key, b'{"runId": 5}', good.headers)
    for message in (*BAD, broken, good):
        await stack.bus.publish(message)
    await stack.settle()
    assert await stored_sequences(stack, run_id) == [1]
    letters = await list_dead_letters(stack.bus, idle=0.2)
    assert len(letters) == 3
    assert all(letter.reason.startswith("PoisonMessageError") for letter in letters)
    assert [letter.event_type for letter in letters].count("io.remit.run-step.llm.v1") == 1
    # Sent again once; then there is nothing new.
    sent: list[Any] = [await replay_dead_letters(stack.bus, "g", idle=0.2) for _ in range(2)]
    assert sent == [3, 0]


async def test_a_step_the_database_refuses_is_marked_and_stops_nothing(stack: Stack) -> None:
    conversation, run_id, run = await begun(stack)
    odd = run.steps.add("tool_changes", {"changes": [{"table": "pages\u0000", "uid": 3, "action": "updated\u0000"}]})
    assert odd.sequence == 1
    # A round that fits no integer column.
    run.steps.all.append(run.steps.all[0].model_copy(update={"sequence": 2, "round": 2**40, "kind": "tool_changes"}))
    write(run, 4)
    await stack.finish(run_id)
    found = await stack.changes(conversation)
    # Without the characters no text of the database can hold, the first one names a record after all.
    assert [row["key"] for row in found["rows"]] == ["pages:4", "pages:3"]
    assert "captureIncomplete" in [note["code"] for note in found["notes"]]
    async with stack.database.read() as session:
        kinds = list(await session.scalars(text("SELECT kind FROM run_step ORDER BY sequence LIMIT 2")))
    assert kinds == ["tool_changes", "unreadable"]


@pytest.mark.req("R-014")
async def test_a_settled_status_is_never_seen_without_its_entry(stack: Stack) -> None:
    _, run_id, run = await begun(stack)
    write(run, 3)
    run.status, run.final = RunStatus.COMPLETED, "Done."
    run.steps.status("completed")
    async with stack.database.unit_of_work() as session:
        await session.execute(text("ALTER TABLE run_record ADD CONSTRAINT no_entry CHECK (segment IS NULL)"))
    with pytest.raises(Exception, match="no_entry"):
        await stack.services.delivery.steps(run.start.conversation_id or uuid7(), run_id, run.owner, run.steps.all)
    async with stack.database.read() as session:
        seen = (await session.execute(text("SELECT status, (SELECT count(*) FROM run_step) FROM conversation"))).one()
    assert tuple(seen) == ("running", 0)
    async with stack.database.unit_of_work() as session:
        await session.execute(text("ALTER TABLE run_record DROP CONSTRAINT no_entry"))
    await stack.services.delivery.steps(run.start.conversation_id or uuid7(), run_id, run.owner, run.steps.all)
    async with stack.database.read() as session:
        seen = (await session.execute(text("SELECT status, (SELECT count(*) FROM run_record) FROM conversation"))).one()
    assert tuple(seen) == ("completed", 1)


@pytest.mark.req("R-014", "A-16")
async def test_two_consumers_at_once_project_each_step_once(stack: Stack) -> None:
    conversation, run_id, run = await begun(stack)
    for uid in range(1, 10):
        write(run, uid)
    deliver = stack.services.delivery.steps
    whole = list(run.steps.all)
    applied = await asyncio.gather(*(deliver(conversation, run_id, run.owner, whole) for _ in range(4)))
    assert sorted(applied) == [0, 0, 0, len(whole)]
    assert len(await keys(stack, conversation)) == 9
