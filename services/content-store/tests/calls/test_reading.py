"""``read`` within the rights of the call's user, odd input included."""

from __future__ import annotations

import asyncpg
import pytest
from remit_contracts.calls import CallOutcome, Read
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request


async def read(
    store: TestStore, operation: Read, user: int = 1
) -> tuple[list[dict[str, object]], list[tuple[str, str]]]:
    result = await store.service.apply(uuid7(), apply_request(operation, user=user))
    assert result.outcome is CallOutcome.COMMITTED
    (done,) = result.operations
    return list(done.rows), [(error.record, error.code) for error in done.errors]


async def test_rows_come_in_the_order_asked_for_and_a_missing_one_is_an_error(store: TestStore) -> None:
    rows, errors = await read(store, Read(table="tt_content", uids=[9, 4711, 5], fields=["header"]))
    assert [row["header"] for row in rows] == ["Hours", "Welcome"]
    assert errors == [("4711", "record_not_found")]


async def test_passwords_are_never_read(store: TestStore) -> None:
    (row,), _ = await read(store, Read(table="be_users", uids=[1]))
    assert "password" not in row
    assert await read(store, Read(table="be_users", uids=[1], fields=["password"])) == (
        [],
        [("password", "unknown_field")],
    )


@pytest.mark.parametrize("uid", ["+5", "05", "5 ", "x\x00", "NEWnever", 0, -5, 2**63])
async def test_an_indefinite_uid_reads_nothing(store: TestStore, uid: int | str) -> None:
    rows, errors = await read(store, Read(table="tt_content", uids=[uid]))
    assert (rows, [code for _, code in errors]) == ([], ["record_not_found"])


async def test_an_editor_reads_what_the_editor_may(store: TestStore) -> None:
    owner = await asyncpg.connect(store.owner_url)
    await owner.execute(
        "INSERT INTO be_groups (uid, pid, title, tables_select, db_mountpoints) VALUES (900, 0, 'E', 'tt_content', '1')"
    )
    await owner.execute(
        "INSERT INTO be_users (uid, pid, username, usergroup, options, workspace_perms) VALUES (900, 0, 'eva', '900', 3, 1)"
    )
    await owner.execute("SELECT count(*) FROM capture_take()")
    await owner.close()
    rows, errors = await read(store, Read(table="tt_content", uids=[9, 7], fields=["uid"]), user=900)
    # Content 7 lies outside of the mount: said in the same words as if it were not there.
    assert ([row["uid"] for row in rows], errors) == ([9], [("7", "record_not_found")])
    assert await read(store, Read(table="pages", uids=[10]), user=900) == ([], [("", "record_not_found")])
