"""Events that are applied at once, and when the runtime is asked all the same (T-71)."""

from __future__ import annotations

from uuid import UUID

import pytest
from chat_gateway.projection.handler import StepHandler
from gateway_support.runtime import FakeRun
from gateway_support.stack import Stack
from gateway_support.steps import message_of
from gateway_support.store import visible
from service_kit.bus import ReceivedMessage
from service_kit.ids import uuid7
from sqlalchemy import text


async def begun(stack: Stack) -> tuple[UUID, UUID, FakeRun]:
    stack.store.show(visible("pages", 3), visible("pages", 4))
    conversation = await stack.conversation()
    run_id, run = await stack.say(conversation)
    run.steps.whole_write("update_page_metadata", "c3", "pages", 3)
    return conversation, run_id, run


async def rows(stack: Stack, conversation: UUID) -> list[str]:
    return [row["key"] for row in (await stack.changes(conversation))["rows"]]


async def deliver(stack: Stack, conversation: UUID, run: FakeRun, *sequences: int) -> None:
    """Hand these steps to the consumer's handler together, each as an event of its own."""
    messages = [message_of(run.steps.all[number - 1], conversation, run.owner, uuid7()) for number in sequences]
    handler = StepHandler(stack.services.delivery)
    await handler.many([ReceivedMessage(one.topic, one.key, one.value, one.headers) for one in messages])


@pytest.mark.req("T-71")
async def test_the_next_steps_are_applied_without_asking_the_runtime(stack: Stack) -> None:
    conversation, _, run = await begun(stack)
    before = dict(stack.runtime.calls)
    await deliver(stack, conversation, run, 1, 2, 3)
    assert await rows(stack, conversation) == ["pages:3"]
    assert dict(stack.runtime.calls) == before


@pytest.mark.req("T-71")
async def test_steps_behind_a_gap_are_asked_for_and_come_once(stack: Stack) -> None:
    conversation, _, run = await begun(stack)
    await deliver(stack, conversation, run, 3)
    assert await rows(stack, conversation) == ["pages:3"]
    assert stack.runtime.calls["events"] == 1
    await deliver(stack, conversation, run, 1, 2, 3)
    (found,) = (await stack.changes(conversation))["rows"]
    assert len(found["calls"]) == 1
    assert stack.runtime.calls["events"] == 1


@pytest.mark.req("T-71")
async def test_a_late_repeat_does_not_make_a_run_readable_again(stack: Stack) -> None:
    conversation, run_id, run = await begun(stack)
    await deliver(stack, conversation, run, 1, 2)
    await stack.services.delivery.unreadable(conversation, run_id)
    assert await readable(stack, run_id) is False
    await deliver(stack, conversation, run, 1)
    assert await readable(stack, run_id) is False
    await deliver(stack, conversation, run, 3)
    assert await readable(stack, run_id) is True


async def readable(stack: Stack, run_id: UUID) -> bool:
    async with stack.database.read() as session:
        found = await session.execute(text("SELECT readable FROM chat_run WHERE id = :run"), {"run": run_id})
    return bool(found.scalar_one())
