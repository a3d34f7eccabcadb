from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from chat_gateway.stream.frames import last_event_id
from chat_gateway.stream.repository import purge_events
from gateway_support.stack import EDITOR, Stack
from service_kit.auth import UserTokenIssuer
from service_kit.clock import utc_now
from service_kit.ids import uuid7
from sqlalchemy import text

StartStack = Callable[..., AbstractAsyncContextManager[Stack]]
Event = dict[str, Any]


class Reader:
    """Reads the events of an open stream."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines
        self.comments = 0

    async def next(self) -> Event | None:
        """The next event, none where the stream ended."""
        event: Event = {}
        async with asyncio.timeout(20):
            async for line in self._lines:
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    event[name] = json.loads(value) if name == "data" else value
                elif "data" in event:
                    return event
        return None

    async def until(self, kind: str) -> list[Event]:
        """Events up to and with the first of a kind."""
        found: list[Event] = []
        while (event := await self.next()) is not None:
            found.append(event)
            if event["event"] == kind:
                return found
        raise AssertionError(f"the stream ended without {kind}: {found}")


@asynccontextmanager
async def listening(
    stack: Stack, conversation: UUID, last: object = None, token: str | None = None
) -> AsyncIterator[Reader]:
    headers = stack.headers()
    if token is not None:
        headers = {"Authorization": f"Bearer {token}"}
    if last is not None:
        headers["Last-Event-ID"] = str(last)
    path = f"/v1/conversations/{conversation}/events"
    async with stack.http.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Reader(response.aiter_lines())


async def test_a_stream_begins_with_the_state_and_tells_that_something_changed(stack: Stack) -> None:
    conversation = await stack.conversation()
    async with listening(stack, conversation) as reader:
        state = await reader.next()
        assert state is not None
        assert (state["event"], state["data"]["status"]) == ("state", "idle")
        run_id, run = await stack.say(conversation)
        run.steps.whole_write("update_page_metadata", "c1", "pages", 3)
        await stack.finish(run_id, "Secret words of the answer")
        seen = await reader.until("status")
        while seen[-1]["data"]["status"] != "completed":
            seen += await reader.until("status")
    kinds = [event["event"] for event in seen]
    assert kinds[:2] == ["message", "status"]
    assert {"changes", "activity", "message", "status"} <= set(kinds)
    assert "Secret" not in str(seen)
    ids = [int(event["id"]) for event in seen]
    assert ids == list(range(1, len(ids) + 1))


async def test_a_client_resumes_without_a_gap_or_a_repeat(stack: Stack) -> None:
    conversation = await stack.conversation()
    run_id, _ = await stack.say(conversation)
    await stack.finish(run_id)
    async with listening(stack, conversation, 0) as reader:
        first = await reader.until("status")
    cut = int(first[-1]["id"])
    again, _ = await stack.say(conversation, "More")
    await stack.finish(again)
    async with listening(stack, conversation, cut) as reader:
        second = [event for _ in range(2) for event in await reader.until("status")]
    ids = [int(event["id"]) for event in (*first, *second)]
    assert ids == list(range(1, len(ids) + 1))


@pytest.mark.parametrize("last", [999_999, 1])
async def test_where_nothing_can_be_resumed_the_client_is_told_to_load_anew(stack: Stack, last: int) -> None:
    conversation = await stack.conversation()
    run_id, _ = await stack.say(conversation)
    await stack.finish(run_id)
    async with stack.database.unit_of_work() as session:
        await session.execute(text("UPDATE stream_event SET created_at = now() - interval '2 days' WHERE id <= 3"))
        assert await purge_events(session, utc_now() - timedelta(days=1)) == 3
    async with listening(stack, conversation, last) as reader:
        event = await reader.next()
    assert event is not None
    assert event["event"] == "reset"
    assert event["data"]["status"] == "completed"


async def test_a_stream_ends_with_its_token_and_beats_until_then(start_stack: StartStack) -> None:
    async with start_stack(stream_heartbeat=0.05, stream_poll=0.05) as stack:
        conversation = await stack.conversation()
        issuer = UserTokenIssuer(stack.store.key, "remit", "remit", timedelta(seconds=2))
        token = issuer.issue(EDITOR, uuid7())[0]
        async with listening(stack, conversation, token=token) as reader:
            seen = await reader.until("end")
            assert await reader.next() is None
    assert seen[-1]["data"] == {"reason": "reconnect"}
    assert "id" not in seen[-1]
    assert reader.comments > 0


async def test_a_stream_ends_when_the_login_or_the_conversation_does(start_stack: StartStack) -> None:
    async with start_stack(stream_heartbeat=0.05, stream_poll=0.05) as stack:
        session = uuid7()
        conversation = await stack.conversation()
        async with listening(stack, conversation, token=stack.store.token(EDITOR, session)) as reader:
            await reader.next()
            stack.store.ended.add(session)
            assert (await reader.until("end"))[-1]["data"] == {"reason": "reconnect"}
        async with listening(stack, conversation) as reader:
            await reader.next()
            assert (await stack.request("DELETE", f"/conversations/{conversation}")).status_code == 204
            assert (await reader.until("end"))[-1]["data"] == {"reason": "conversation_not_found"}


async def test_a_wake_up_of_another_process_reaches_the_stream_long_before_the_next_look(
    start_stack: StartStack,
) -> None:
    # Looks every ten minutes: only the notification can bring the event in time.
    async with start_stack(stream_heartbeat=600.0, stream_poll=600.0) as stack:
        conversation = await stack.conversation()
        run_id, run = await stack.say(conversation)
        async with listening(stack, conversation) as reader:
            await reader.next()
            run.steps.tool("get_page_content", "c1")
            await stack.publish(run_id)
            await stack.settle()
            assert (await reader.until("activity"))[-1]["data"] == {"run": str(run_id)}


async def test_open_streams_are_limited(start_stack: StartStack) -> None:
    async with start_stack(stream_connections=1) as stack:
        conversation = await stack.conversation()
        async with listening(stack, conversation) as reader:
            await reader.next()
            answer = await stack.request("GET", f"/conversations/{conversation}/events")
            assert (answer.status_code, answer.json()["code"]) == (503, "too_many_streams")


@pytest.mark.parametrize(
    ("header", "read"), [(None, None), ("12", 12), ("-1", None), ("x", None), ("9" * 30, None), ("", None)]
)
def test_only_ids_of_ours_are_resumed_from(header: str | None, read: int | None) -> None:
    assert last_event_id(header) == read
