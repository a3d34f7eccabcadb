"""``apply``: one request, one transaction, judged and answered (CALLS 1 to 3)."""

from __future__ import annotations

import asyncio

import pytest
from content_store.calls.errors import CallExists, CallFenced, CallLocked, CallResolved
from content_store.records.hashing import record_hash
from remit_contracts.calls import CallOutcome, Cmdmap, Datamap, Expect, Read, RollbackReason
from remit_contracts.changes import ChangeAction, Coverage
from remit_contracts.records import WriteTarget
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request, command, update

HALL = EffectiveAssignmentScope(pages=(PageRoot(page=10, depth=1),))
HEADER = "SELECT header FROM tt_content WHERE uid = $1"


@pytest.mark.req("S-58", "C-03", "C-05", "C-08", "C-10")
async def test_an_update_is_committed_listed_and_published(store: TestStore) -> None:
    call_id = uuid7()
    request = apply_request(update("tt_content", 9, header="New"), write_target=WriteTarget(table="tt_content", uid=9))
    result = await store.service.apply(call_id, request)
    assert result.outcome is CallOutcome.COMMITTED
    (change,) = result.changes.changes
    assert (change.table, change.uid, change.action, change.write_target) == (
        "tt_content",
        9,
        ChangeAction.UPDATED,
        True,
    )
    assert (change.workspace_id, change.language, change.hidden) == (0, 0, False)
    assert result.changes.coverage is Coverage.DATAHANDLER
    assert result.changes.witnesses == ("hooks", "history", "database")
    assert "New" not in result.changes.model_dump_json()
    assert await store.value(HEADER, 9) == "New"
    assert await store.value("SELECT count(*) FROM outbox WHERE stream = 'tt_content:9'") == 1
    assert await store.value("SELECT count(*) FROM sys_history WHERE recuid = 9 AND tablename = 'tt_content'") == 1


async def test_one_record_costs_at_most_sixteen_statements(store: TestStore) -> None:
    # The first call of a connection also asks the server for the types of its columns.
    await store.service.apply(uuid7(), apply_request(update("tt_content", 9, header="Old"), scope=HALL))
    with store.counter.measure() as counter:
        result = await store.service.apply(uuid7(), apply_request(update("tt_content", 9, header="New"), scope=HALL))
    assert result.outcome is CallOutcome.COMMITTED
    assert counter.count <= 16, "\n".join(s[:150] for s in counter.statements)


async def test_the_same_call_twice_writes_once(store: TestStore) -> None:
    call_id, request = uuid7(), apply_request(update("tt_content", 5, header="New"))
    first = await store.service.apply(call_id, request)
    assert await store.service.apply(call_id, request) == first
    assert await store.value("SELECT count(*) FROM sys_history WHERE recuid = 5") == 1


async def test_the_same_id_with_other_operations_is_refused(store: TestStore) -> None:
    call_id, run_id = uuid7(), uuid7()
    await store.service.apply(call_id, apply_request(update("tt_content", 5, header="New"), run_id=run_id))
    with pytest.raises(CallExists):
        await store.service.apply(call_id, apply_request(update("tt_content", 5, header="Other"), run_id=run_id))
    assert await store.value(HEADER, 5) == "New"


@pytest.mark.req("S-14")
async def test_the_scope_is_not_part_of_what_makes_a_call_the_same(store: TestStore) -> None:
    call_id, run_id = uuid7(), uuid7()
    first = await store.service.apply(call_id, apply_request(update("tt_content", 5, header="New"), run_id=run_id))
    again = apply_request(update("tt_content", 5, header="New"), run_id=run_id, scope=EffectiveAssignmentScope.none())
    assert await store.service.apply(call_id, again) == first


async def test_an_older_lease_is_fenced_and_writes_nothing(store: TestStore) -> None:
    run_id = uuid7()
    await store.service.apply(uuid7(), apply_request(update("tt_content", 5, header="A"), run_id=run_id, epoch=2))
    with pytest.raises(CallFenced):
        await store.service.apply(uuid7(), apply_request(update("tt_content", 5, header="B"), run_id=run_id, epoch=1))
    assert await store.value(HEADER, 5) == "A"


@pytest.mark.req("S-58")
async def test_a_zombie_that_comes_after_resolve_writes_nothing(store: TestStore) -> None:
    call_id, run_id = uuid7(), uuid7()
    request = apply_request(update("tt_content", 5, header="Zombie"), run_id=run_id, epoch=1)
    assert (await store.service.known(call_id)).outcome is CallOutcome.UNKNOWN
    assert (await store.service.resolve(call_id, run_id, 2)).outcome is CallOutcome.ROLLED_BACK
    with pytest.raises(CallFenced):
        await store.service.apply(call_id, request)
    # With the same lease, too: what was resolved as not done is never done.
    with pytest.raises(CallResolved):
        await store.service.apply(call_id, request.model_copy(update={"lease_epoch": 2}))
    assert await store.value(HEADER, 5) == "Welcome"


@pytest.mark.req("S-58")
async def test_resolve_of_a_committed_call_gives_its_result(store: TestStore) -> None:
    call_id, run_id = uuid7(), uuid7()
    result = await store.service.apply(call_id, apply_request(update("tt_content", 5, header="A"), run_id=run_id))
    resolution = await store.service.resolve(call_id, run_id, 2)
    assert (resolution.outcome, resolution.result) == (CallOutcome.COMMITTED, result)
    with pytest.raises(CallFenced):
        await store.service.resolve(call_id, run_id, 1)


@pytest.mark.req("S-58")
async def test_resolve_waits_for_a_call_in_flight_and_says_open_when_that_takes_long(store: TestStore) -> None:
    call_id, run_id = uuid7(), uuid7()
    opened = store.open_calls()
    from remit_contracts.actor import ActorContext
    from remit_contracts.calls import OpenRequest

    await opened.open(call_id, OpenRequest(run_id=run_id, lease_epoch=1, actor=ActorContext(user_uid=1), tool="t"))
    assert (await store.service.resolve(call_id, run_id, 2)).outcome is CallOutcome.OPEN
    await opened.close()
    assert (await store.service.resolve(call_id, run_id, 2)).outcome is CallOutcome.ROLLED_BACK


async def test_a_row_held_by_somebody_else_is_locked_and_nothing_is_written(store: TestStore) -> None:
    async with store.opens.acquire() as other, other.transaction():
        await other.execute("SELECT 1 FROM tt_content WHERE uid = 5 FOR UPDATE")
        with pytest.raises(CallLocked):
            await store.service.apply(uuid7(), apply_request(update("tt_content", 5, header="New")))
    assert await store.value(HEADER, 5) == "Welcome"


async def test_two_calls_on_the_same_row_end_one_after_the_other(store: TestStore) -> None:
    results = await asyncio.gather(
        *(store.service.apply(uuid7(), apply_request(update("tt_content", 5, header=f"H{i}"))) for i in range(4))
    )
    assert [result.outcome for result in results] == [CallOutcome.COMMITTED] * 4
    assert await store.value("SELECT count(*) FROM sys_history WHERE recuid = 5") == 4


async def test_later_operations_use_placeholders_of_earlier_ones(store: TestStore) -> None:
    result = await store.service.apply(
        uuid7(),
        apply_request(
            Datamap(datamap={"pages": {"NEWp": {"pid": 10, "title": "Fresh"}}}),
            Datamap(datamap={"tt_content": {"NEWc": {"pid": "NEWp", "header": "On it", "CType": "text"}}}),
            Cmdmap(cmdmap={"tt_content": {"NEWc": {"move": 10}}}),
            Datamap(datamap={"tt_content": {"NEWc": {"header": "Moved"}}}),
            Read(table="tt_content", uids=["NEWc", 5], fields=["header", "pid"]),
            write_target=WriteTarget(table="tt_content", uid="NEWc"),
        ),
    )
    assert [operation.errors for operation in result.operations] == [()] * 5
    page, content = result.operations[0].placeholders["NEWp"], result.operations[1].placeholders["NEWc"]
    assert result.operations[4].rows == (
        {"uid": content, "pid": 10, "header": "Moved"},
        {"uid": 5, "pid": 10, "header": "Welcome"},
    )
    assert result.write_target == WriteTarget(table="tt_content", uid=content)
    actions = {(c.table, c.uid): (c.action, c.write_target) for c in result.changes.changes}
    assert actions[("pages", page)] == (ChangeAction.CREATED, False)
    assert actions[("tt_content", content)] == (ChangeAction.CREATED, True)


@pytest.mark.req("W-01", "C-05", "C-09", "C-10")
async def test_the_target_of_a_copy_or_a_translation_is_the_record_it_made(store: TestStore) -> None:
    named = WriteTarget(table="tt_content", uid=9, copied=True)
    result = await store.service.apply(
        uuid7(), apply_request(Cmdmap(cmdmap={"tt_content": {"9": {"copy": 10}}}), write_target=named)
    )
    made = result.operations[0].copies["tt_content"]["9"]
    assert result.write_target == WriteTarget(table="tt_content", uid=made)
    assert [c.uid for c in result.changes.changes if c.write_target] == [made]
    assert result.changes.coverage is Coverage.DATAHANDLER

    nothing = await store.service.apply(
        uuid7(), apply_request(Cmdmap(cmdmap={"tt_content": {"987654": {"copy": 10}}}), write_target=named)
    )
    assert nothing.write_target is None
    assert nothing.changes.coverage is Coverage.NOT_CAPTURED


@pytest.mark.req("S-66")
async def test_expect_guards_against_a_change_meanwhile(store: TestStore) -> None:
    row = dict((await store.rows("SELECT * FROM tt_content WHERE uid = 5"))[0])
    good = record_hash(store.env.schema["tt_content"], row)
    first = await store.service.apply(
        uuid7(), apply_request(Expect(table="tt_content", uid=5, hash=good), update("tt_content", 5, header="A"))
    )
    assert first.outcome is CallOutcome.COMMITTED
    second = await store.service.apply(
        uuid7(),
        apply_request(
            update("tt_content", 9, header="B"),
            Expect(table="tt_content", uid=5, hash=good),
            update("tt_content", 5, header="B"),
        ),
    )
    assert (second.outcome, second.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.EXPECT)
    assert second.changes.changes == ()
    assert [await store.value(HEADER, uid) for uid in (5, 9)] == ["A", "Hours"]


@pytest.mark.req("S-57", "S-66")
async def test_an_entry_with_an_error_leaves_the_others(store: TestStore) -> None:
    result = await store.service.apply(
        uuid7(),
        apply_request(
            update("tt_content", 7, header="A"),
            Datamap(datamap={"tt_content": {"9": {"header": "nul\x00"}, "6": {"header": "C"}}}),
            Datamap(datamap={"unknown": {"1": {"a": 1}}}),
            command("tt_content", 4711, "delete"),
        ),
    )
    assert result.outcome is CallOutcome.COMMITTED
    assert [len(operation.errors) for operation in result.operations] == [0, 1, 1, 1]
    assert {(c.table, c.uid) for c in result.changes.changes} == {("tt_content", 7), ("tt_content", 6)}
    assert [await store.value(HEADER, uid) for uid in (7, 6, 9)] == ["A", "C", "Hours"]


@pytest.mark.req("C-06", "C-07")
async def test_fifty_entries_with_the_target_among_them(store: TestStore) -> None:
    rows = {f"NEW{i}": {"pid": 10, "header": str(i), "CType": "text"} for i in range(60)}
    result = await store.service.apply(
        uuid7(),
        apply_request(Datamap(datamap={"tt_content": rows}), write_target=WriteTarget(table="tt_content", uid="NEW59")),
    )
    assert len(result.changes.changes) == 50
    assert result.changes.changes_omitted == 10
    assert [c.write_target for c in result.changes.changes].count(True) == 1
    assert not hasattr(result.changes.changes[0], "public")


@pytest.mark.req("C-09", "C-10", "C-20")
async def test_a_target_nothing_reported_is_not_captured(store: TestStore) -> None:
    result = await store.service.apply(
        uuid7(),
        apply_request(Read(table="tt_content", uids=[5]), write_target=WriteTarget(table="tt_content", uid=5)),
    )
    assert (result.changes.changes, result.changes.coverage) == ((), Coverage.NOT_CAPTURED)


@pytest.mark.req("C-18")
async def test_a_call_that_only_reads_costs_nothing_for_the_capture(store: TestStore) -> None:
    with store.counter.measure() as counter:
        result = await store.service.apply(uuid7(), apply_request(Read(table="tt_content", uids=[5])))
    assert result.changes.witnesses == ()
    assert not [s for s in counter.statements if "capture_take" in s]
