"""Which lock of the page tree a call asks for, and what nested writes do that need more (CALLS 1): pure."""

from __future__ import annotations

from typing import Any

import pytest
from content_store.calls.errors import TreeLockNeeded
from content_store.calls.tree_lock import TreeLock, TreeLockHook, needed_lock
from remit_contracts.calls import Cmdmap, Datamap, FlushCache, Operation, Read

NONE, SHARED, EXCLUSIVE = TreeLock
UNUSED: Any = None


def commands(table: str, **values: Any) -> Cmdmap:
    return Cmdmap(cmdmap={table: {"5": values}})


@pytest.mark.parametrize(
    ("operations", "lock"),
    [
        ([], NONE),
        ([Read(table="pages", uids=[1]), FlushCache(group="all")], NONE),
        ([Datamap(datamap={"tt_content": {"5": {"pid": 1}}})], NONE),
        ([Datamap(datamap={"tt_content": {"NEW1": {"pid": 1}}})], SHARED),
        ([Datamap(datamap={"tt_content": {"05x": {}}})], SHARED),
        ([commands("tt_content", delete=1)], NONE),
        ([commands("tt_content", move=1)], SHARED),
        ([commands("tt_content", undelete=1)], SHARED),
        ([commands("pages", copy=1)], SHARED),
        ([commands("pages", localize=1)], SHARED),
        ([commands("pages", move=1)], EXCLUSIVE),
        ([commands("pages", delete=1)], EXCLUSIVE),
        ([commands("tt_content", move=1), commands("pages", delete=1), commands("tt_content", copy=1)], EXCLUSIVE),
        ([Datamap(datamap={"tt_content": None, "pages": []}), Cmdmap(cmdmap={"pages": None})], NONE),
        ([Cmdmap(cmdmap={"pages": {"1": "move"}}), Cmdmap(cmdmap={"pages": {"1": ["move"]}})], NONE),
    ],
)
def test_the_lock_the_operations_ask_for(operations: list[Operation], lock: TreeLock) -> None:
    assert needed_lock(operations) is lock


async def nested(hook: TreeLockHook, what: str, table: str) -> None:
    match what:
        case "new":
            await hook.pre_process_field_array(UNUSED, {}, table, "NEW1")
        case "update":
            await hook.pre_process_field_array(UNUSED, {}, table, "5")
        case "delete":
            await hook.delete_action(UNUSED, table, 5, {}, False)
        case "move":
            await hook.move_record(UNUSED, table, 5, 1, {}, 1, False)


@pytest.mark.parametrize(
    ("what", "table", "needs"),
    [
        ("new", "tt_content", SHARED),
        ("new", "pages", SHARED),
        ("update", "pages", NONE),
        ("delete", "tt_content", NONE),
        ("delete", "pages", EXCLUSIVE),
        ("move", "tt_content", SHARED),
        ("move", "pages", EXCLUSIVE),
    ],
)
@pytest.mark.parametrize("held", TreeLock)
async def test_what_needs_more_than_was_taken_ends_the_call(
    held: TreeLock, what: str, table: str, needs: TreeLock
) -> None:
    hook = TreeLockHook(held)
    if needs <= held:
        await nested(hook, what, table)
        return
    with pytest.raises(TreeLockNeeded) as error:
        await nested(hook, what, table)
    assert error.value.exclusive is (needs is EXCLUSIVE)


async def test_an_open_call_takes_the_shared_lock_once_when_it_first_places_a_row_and_never_the_exclusive_one() -> None:
    taken: list[TreeLock] = []

    async def take(lock: TreeLock) -> None:
        taken.append(lock)

    hook = TreeLockHook(NONE, take)
    await nested(hook, "update", "tt_content")
    assert taken == []
    await nested(hook, "new", "tt_content")
    await nested(hook, "move", "tt_content")
    assert taken == [SHARED]
    with pytest.raises(TreeLockNeeded):
        await nested(hook, "move", "pages")
    assert taken == [SHARED]
