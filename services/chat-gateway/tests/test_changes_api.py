from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from uuid import UUID

import pytest
from chat_gateway.changes.repository import list_source
from chat_gateway.projection.delivery import lock_conversation
from chat_gateway.segments.repository import append_entry
from gateway_support.stack import EDITOR, Stack
from gateway_support.store import visible
from remit_contracts.conversations import RunRecordEntry
from service_kit.database import Database
from service_kit.ids import uuid7
from service_kit.statements import StatementCounter
from sqlalchemy import text

StartStack = Callable[..., AbstractAsyncContextManager[Stack]]


async def wrote(stack: Stack, *uids: int, table: str = "pages") -> tuple[UUID, UUID]:
    conversation = await stack.conversation()
    run_id, run = await stack.say(conversation)
    for uid in uids:
        run.steps.whole_write("update_page_metadata", f"c{uid}", table, uid)
    await stack.finish(run_id)
    return conversation, run_id


@pytest.mark.req("R-095")
async def test_without_the_permission_service_nothing_is_shown(stack: Stack) -> None:
    stack.store.show(visible("pages", 3, "Secret"))
    conversation, _ = await wrote(stack, 3)
    stack.store.broken = True
    answer = await stack.request("GET", f"/conversations/{conversation}/changes")
    assert (answer.status_code, answer.json()["code"]) == (503, "visibility_unavailable")
    assert "pages" not in answer.text
    stack.store.broken = False
    assert len((await stack.changes(conversation))["rows"]) == 1


@pytest.mark.req("R-090", "R-093")
async def test_the_filter_is_asked_anew_for_each_reading(stack: Stack) -> None:
    stack.store.show(visible("pages", 3, "One"), visible("pages", 4, "Two"))
    conversation, _ = await wrote(stack, 3, 4)
    assert [row["key"] for row in (await stack.changes(conversation))["rows"]] == ["pages:4", "pages:3"]
    stack.store.hide(EDITOR, "pages", 4)
    found = await stack.changes(conversation)
    assert [row["key"] for row in found["rows"]] == ["pages:3"]
    assert found["counts"]["withheld"] == 1
    assert "Two" not in str(found)


async def test_the_etag_names_revision_and_what_the_reader_sees(stack: Stack) -> None:
    stack.store.show(visible("pages", 3))
    conversation, _ = await wrote(stack, 3)
    path = f"/conversations/{conversation}/changes"
    first = await stack.request("GET", path)
    etag = first.headers["etag"]
    assert etag.startswith(f'"{first.json()["changesRevision"]}-')
    same = await stack.request("GET", path, headers={"If-None-Match": etag})
    assert (same.status_code, same.content) == (304, b"")
    stack.store.hide(EDITOR, "pages", 3)
    assert (await stack.request("GET", path, headers={"If-None-Match": etag})).status_code == 200


async def test_the_list_speaks_the_readers_language(stack: Stack) -> None:
    conversation, _ = await wrote(stack, 3)
    answer = await stack.request(
        "GET", f"/conversations/{conversation}/changes", headers={"Accept-Language": "de-CH, en;q=0.5"}
    )
    notes = {note["code"]: note["text"] for note in answer.json()["notes"]}
    assert notes["coverage"].startswith("Diese Liste nennt die Änderungen")
    assert notes["withheld"].startswith("1 weitere(r)")
    assert answer.headers["content-language"] == "de"


@pytest.mark.req("R-081")
async def test_records_are_asked_about_in_batches_and_pages_follow_the_limit(start_stack: StartStack) -> None:
    async with start_stack(visibility_batch=10, change_rows=20) as stack:
        stack.store.show(*(visible("pages", uid) for uid in range(1, 31)))
        conversation, _ = await wrote(stack, *range(1, 36))
        found = await stack.changes(conversation)
        assert [len(request.records) for request in stack.store.asked] == [10, 10, 10, 5]
        assert len(found["rows"]) == 20
        assert (found["counts"]["omitted"], found["counts"]["withheld"]) == (10, 5)
        path = f"/conversations/{conversation}/changes?limit=12"
        first = (await stack.request("GET", path)).json()
        second = (await stack.request("GET", f"{path}&cursor={first['nextCursor']}")).json()
        assert [row["key"] for row in (*first["rows"], *second["rows"])] == [row["key"] for row in found["rows"]]
        assert second["nextCursor"] is None


@pytest.mark.req("R-111")
async def test_a_poll_reads_no_event_of_a_run(stack: Stack) -> None:
    conversation, _ = await wrote(stack, 3)
    before = dict(stack.runtime.calls)
    for _ in range(3):
        await stack.messages(conversation)
    assert dict(stack.runtime.calls) == before
    assert stack.store.calls["visibility"] == 0


@pytest.mark.req("R-080")
async def test_a_run_its_owner_cannot_read_any_more_is_only_counted(stack: Stack) -> None:
    stack.store.show(visible("pages", 3))
    conversation = await stack.conversation()
    run_id, run = await stack.say(conversation)
    run.steps.whole_write("update_page_metadata", "c1", "pages", 3)
    await stack.publish(run_id)
    await stack.settle()
    assert len((await stack.changes(conversation))["rows"]) == 1
    run.hidden = True
    await stack.consumer.refill.check()
    found = await stack.changes(conversation)
    assert found["rows"] == []
    assert found["counts"]["unreadableRuns"] == 1
    assert str(run_id) not in str(found)
    poll = await stack.messages(conversation)
    assert (poll["conversation"]["status"], poll["errorCode"]) == ("failed", "run_unreadable")


@pytest.mark.req("A-14")
async def test_while_a_step_runs_the_list_says_so(stack: Stack) -> None:
    stack.store.show(visible("pages", 3))
    conversation = await stack.conversation()
    run_id, run = await stack.say(conversation)
    run.steps.whole_write("update_page_metadata", "c1", "pages", 3)
    await stack.publish(run_id)
    await stack.settle()
    found = await stack.changes(conversation)
    assert found["running"] is True
    assert [note["code"] for note in found["notes"]] == ["coverage", "running"]
    assert len(found["rows"]) == 1


@pytest.mark.req("R-098", "S-71")
async def test_a_write_stopped_by_the_scope_is_listed_as_refused(stack: Stack) -> None:
    stack.store.show(visible("pages", 3, "Home"))
    conversation = await stack.conversation()
    run_id, run = await stack.say(conversation)
    run.steps.llm()
    run.steps.tool("update_page_metadata", "c1", error=True, refusal="policy")
    stopped = {"operation": "update", "table": "pages", "reason": "outside_scope", "undone": True}
    run.steps.changes("c1", [], refused=[{**stopped, "uid": 3}, {**stopped, "uid": 99}])
    await stack.finish(run_id)
    assert (await stack.messages(conversation))["changesAvailable"] is True
    found = await stack.changes(conversation)
    assert [(item["table"], item["uid"], item["title"]) for item in found["refused"]] == [("pages", 3, "Home")]
    assert found["counts"]["refusedWrites"] == 2
    assert found["counts"]["undoneCalls"] == 1
    assert found["rows"] == []


@pytest.mark.req("A-16")
async def test_the_revision_only_rises(stack: Stack) -> None:
    conversation = await stack.conversation()
    seen = [0]
    for number in range(3):
        run_id, run = await stack.say(conversation, f"m{number}")
        run.steps.whole_write("update_page_metadata", "c1", "pages", 3)
        await stack.finish(run_id)
        seen.append((await stack.messages(conversation))["changesRevision"])
    assert seen == sorted(set(seen))


@pytest.mark.req("R-007", "R-001")
async def test_only_the_newest_two_hundred_entries_are_kept(stack: Stack) -> None:
    conversation = await stack.conversation()
    run = uuid7()
    async with stack.database.unit_of_work() as session:
        row = await lock_conversation(session, conversation)
        assert row is not None
        for segment in range(1, 206):
            assert await append_entry(session, row, RunRecordEntry(run=run, segment=segment, outcome="completed"))
        assert not await append_entry(session, row, RunRecordEntry(run=run, segment=205, outcome="again"))
    async with stack.database.read() as session:
        kept = (await session.execute(text("SELECT count(*), min(segment), max(segment) FROM run_record"))).one()
    assert tuple(kept) == (200, 6, 205)


async def test_the_number_of_statements_does_not_grow_with_the_list(stack: Stack) -> None:
    small, _ = await wrote(stack, 1)
    large, _ = await wrote(stack, *range(1, 41))
    counter = StatementCounter()
    database = Database(stack.settings.database_url.get_secret_value(), application_name="gw-count", counter=counter)
    counted = []
    try:
        for conversation in (small, large):
            counter.reset()
            async with database.read() as session:
                source = await list_source(session, conversation)
            assert len(source.runs) == 1
            counted.append(counter.count)
    finally:
        await database.close()
    assert counted[0] == counted[1]
    assert counted[0] > 0
