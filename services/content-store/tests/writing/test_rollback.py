"""Going back to an entry of a record's history: nothing is guessed, and what is not as it was is named."""

from __future__ import annotations

from typing import Any

import pytest
from content_store.schema.loader import load_schema
from content_store.schema.model import Schema
from content_store.writing.rollback import Place, not_restored, rollback_plan
from store_support.app import StoreUnderTest
from store_support.rows import ALL_BITS

ADMIN = 2
EDITOR = 1


@pytest.fixture
async def site(store: StoreUnderTest) -> StoreUnderTest:
    rows = store.rows
    await rows.page(11, 0, "News", everybody=ALL_BITS, sorting=256)
    await rows.page(12, 0, "About", everybody=ALL_BITS, sorting=512)
    for uid, sorting in ((100, 256), (101, 512), (102, 768)):
        await rows.content(uid, 11, CType="text", sorting=sorting)
    await rows.add("sys_category", uid=401, pid=0, title="d")
    await rows.add("sys_category", uid=400, pid=0, title="c")
    await rows.add(
        "be_groups",
        uid=1,
        tables_select="pages,tt_content",
        tables_modify="pages,tt_content",
        db_mountpoints="11,12",
        pagetypes_select="1",
        explicit_allowdeny="tt_content:CType:text",
    )
    await rows.user(EDITOR, "ed", "1")
    await rows.user(ADMIN, "root", admin=1)
    await store.owner.execute("SELECT count(*) FROM capture_take(NULL)")
    return store


async def send(site: StoreUnderTest, path: str, body: dict[str, Any], user: int = ADMIN) -> dict[str, Any]:
    response = await site.client.post(path, json=body, headers=await site.token(user))
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def write(site: StoreUnderTest, table: str, uid: int, more: Any = None, **fields: Any) -> int:
    """Changes a record; the answer is the uid of its newest entry in the history."""
    await send(site, "/v1/datamap", {"datamap": {table: {str(uid): fields}, **(more or {})}})
    return await newest(site, table, uid)


async def newest(site: StoreUnderTest, table: str, uid: int) -> int:
    found: int = await site.owner.fetchval(
        "SELECT max(uid) FROM sys_history WHERE tablename = $1 AND recuid = $2", table, uid
    )
    return found


async def command(site: StoreUnderTest, table: str, uid: int, name: str, value: Any) -> None:
    answer = await send(site, "/v1/cmdmap", {"cmdmap": {table: {str(uid): {name: value}}}})
    assert answer["entries"][0]["status"] == "written"


async def go_back(site: StoreUnderTest, table: str, uid: int, entry: int, user: int = ADMIN) -> dict[str, Any]:
    return await send(site, f"/v1/records/{table}/{uid}/rollback", {"historyUid": entry}, user)


async def categories(site: StoreUnderTest) -> list[tuple[int, int]]:
    rows = await site.owner.fetch("SELECT uid_local, uid_foreign FROM sys_category_record_mm ORDER BY sorting_foreign")
    return [tuple(row) for row in rows]


async def order(site: StoreUnderTest, page: int = 11) -> list[int]:
    rows = await site.owner.fetch("SELECT uid FROM tt_content WHERE pid = $1 AND deleted = 0 ORDER BY sorting", page)
    return [row["uid"] for row in rows]


async def test_a_relation_written_with_a_placeholder_comes_back(site: StoreUnderTest) -> None:
    entry = await write(site, "tt_content", 100, categories="400")
    await write(site, "tt_content", 100, {"sys_category": {"NEWk": {"pid": 0, "title": "k"}}}, categories="400,NEWk")
    assert len(await categories(site)) == 2
    answer = await go_back(site, "tt_content", 100, entry)
    assert await categories(site) == [(400, 100)]
    assert answer["skippedFields"] == []


async def test_a_relation_exchanged_for_a_placeholder_comes_back_though_the_count_is_the_same(
    site: StoreUnderTest,
) -> None:
    entry = await write(site, "tt_content", 100, categories="400")
    await write(site, "tt_content", 100, {"sys_category": {"NEWk": {"pid": 0, "title": "k"}}}, categories="NEWk")
    assert await newest(site, "tt_content", 100) > entry
    await go_back(site, "tt_content", 100, entry)
    assert await categories(site) == [(400, 100)]


async def test_a_relation_to_several_tables_comes_back(site: StoreUnderTest) -> None:
    entry = await write(site, "sys_category", 400, items="tt_content_100", title="a")
    await write(site, "sys_category", 400, items="tt_content_100,tt_content_101", title="b")
    answer = await go_back(site, "sys_category", 400, entry)
    assert await categories(site) == [(400, 100)]
    assert await site.owner.fetchval("SELECT items FROM sys_category WHERE uid = 400") == 1
    assert answer["skippedFields"] == []


async def test_a_relation_the_history_only_counts_is_left_alone_and_named(site: StoreUnderTest) -> None:
    entry = await write(site, "tt_content", 100, header="one", categories="400")
    await write(site, "tt_content", 100, header="two", categories="401,400")
    await site.owner.execute(
        "UPDATE sys_history SET history_data = jsonb_set(jsonb_set(history_data, '{oldRecord,categories}', '1'), "
        "'{newRecord,categories}', '1') WHERE history_data->'oldRecord' ? 'categories'"
    )
    answer = await go_back(site, "tt_content", 100, entry)
    assert await categories(site) == [(401, 100), (400, 100)]
    assert answer["skippedFields"] == ["categories"]
    assert await site.owner.fetchval("SELECT header FROM tt_content WHERE uid = 100") == "one"


@pytest.mark.parametrize(("uid", "target"), [(100, -101), (100, -102), (101, 11), (102, 11), (102, -100)])
async def test_the_order_on_a_page_comes_back(site: StoreUnderTest, uid: int, target: int) -> None:
    entry = await write(site, "tt_content", uid, header="v1")
    await command(site, "tt_content", uid, "move", target)
    assert await order(site) != [100, 101, 102]
    answer = await go_back(site, "tt_content", uid, entry)
    assert await order(site) == [100, 101, 102]
    assert answer["skippedFields"] == []


async def test_the_order_comes_back_from_another_page(site: StoreUnderTest) -> None:
    entry = await write(site, "tt_content", 101, header="v1")
    await command(site, "tt_content", 101, "move", 12)
    await go_back(site, "tt_content", 101, entry)
    assert (await order(site), await order(site, 12)) == ([100, 101, 102], [])


async def test_the_rights_of_a_page_come_back(site: StoreUnderTest) -> None:
    entry = await write(site, "pages", 12, title="a", perms_user=0)
    await write(site, "pages", 12, title="b", perms_user=31, perms_everybody=1)
    answer = await go_back(site, "pages", 12, entry)
    row = await site.owner.fetchrow("SELECT title, perms_user, perms_everybody FROM pages WHERE uid = 12")
    assert row is not None
    assert tuple(row) == ("a", 0, ALL_BITS)
    assert answer["skippedFields"] == []


async def test_rights_that_are_not_brought_back_are_named(site: StoreUnderTest) -> None:
    entry = await write(site, "pages", 12, title="a", perms_user=0)
    await write(site, "pages", 12, title="b", perms_user=31)
    answer = await go_back(site, "pages", 12, entry, EDITOR)
    assert answer["skippedFields"] == ["perms_user"]
    assert await site.owner.fetchval("SELECT title FROM pages WHERE uid = 12") == "a"


async def test_going_back_to_deleted_brings_values_and_place_back_first(site: StoreUnderTest) -> None:
    await write(site, "tt_content", 100, header="v1")
    await command(site, "tt_content", 100, "move", 12)
    await command(site, "tt_content", 100, "delete", 1)
    entry = await newest(site, "tt_content", 100)
    await command(site, "tt_content", 100, "undelete", 1)
    await write(site, "tt_content", 100, header="v2")
    await command(site, "tt_content", 100, "move", 11)
    answer = await go_back(site, "tt_content", 100, entry)
    row = await site.owner.fetchrow("SELECT pid, header, deleted FROM tt_content WHERE uid = 100")
    assert row is not None
    assert tuple(row) == (12, "v1", 1)
    assert [(e["operation"], e["status"]) for e in answer["entries"]] == [
        ("update", "written"),
        ("move", "written"),
        ("delete", "written"),
    ]
    assert answer["skippedFields"] == []


async def test_a_place_that_cannot_be_brought_back_is_named(site: StoreUnderTest) -> None:
    entry = await write(site, "tt_content", 100, header="v1")
    await command(site, "tt_content", 100, "move", 12)
    await site.owner.execute("UPDATE pages SET deleted = 1 WHERE uid = 11")
    answer = await go_back(site, "tt_content", 100, entry)
    assert answer["skippedFields"] == ["pid"]
    assert [e["status"] for e in answer["entries"]] == ["error"]


# --- the plan ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def described() -> Schema:
    return load_schema()


def entry_row(action: int, **data: Any) -> dict[str, Any]:
    return {"actiontype": action, "history_data": data or None}


def modified(**before: Any) -> dict[str, Any]:
    return entry_row(2, oldRecord=before, newRecord={})


@pytest.mark.parametrize(
    ("table", "field", "before", "expected"),
    [
        ("tt_content", "categories", "400,1", "400,1"),
        ("tt_content", "categories", "", ""),
        ("tt_content", "categories", 2, None),
        ("tt_content", "categories", "x", None),
        ("tt_content", "categories", None, None),
        ("sys_category", "items", "tt_content_100,pages_3", "tt_content_100,pages_3"),
        ("sys_category", "items", "100", None),
        ("sys_category", "items", "tt_content_100,7", None),
    ],
)
def test_only_a_list_that_can_be_read_is_restored(
    described: Schema, table: str, field: str, before: Any, expected: str | None
) -> None:
    plan = rollback_plan(described[table], [modified(**{field: before}), modified()], {"uid": 1, "pid": 1})
    assert plan.fields == ({} if expected is None else {field: expected})
    assert plan.skipped == ([field] if expected is None else [])


def test_the_entry_gone_back_to_knows_best(described: Schema) -> None:
    wanted = entry_row(2, oldRecord={"items": ""}, newRecord={"items": "tt_content_5"})
    plan = rollback_plan(described["sys_category"], [modified(items="5"), wanted], {"uid": 1, "pid": 1})
    assert plan.fields == {"items": "tt_content_5"}


def test_fields_nobody_can_write_are_named(described: Schema) -> None:
    plan = rollback_plan(described["pages"], [modified(SYS_LASTCHANGED=1, gone=2), modified()], {"uid": 1, "pid": 0})
    assert (plan.fields, plan.skipped) == ({}, ["SYS_LASTCHANGED"])


def test_the_place_of_a_record_that_stays_deleted_is_named(described: Schema) -> None:
    moved = entry_row(3, oldData={"pid": 5, "sorting": 1}, newData={"pid": 6, "sorting": 2})
    entries = [entry_row(4), moved, entry_row(5), entry_row(4)]
    row = {"uid": 1, "pid": 6, "sorting": 2, "deleted": 1}
    plan = rollback_plan(described["tt_content"], entries, row)
    assert (plan.deleted, plan.place, plan.skipped) == (None, None, ["pid"])
    plan = rollback_plan(described["tt_content"], entries[1:], {**row, "deleted": 0})
    assert (plan.deleted, plan.place, plan.skipped) == (True, Place(5, 1), [])


def test_what_is_not_as_planned_is_named(described: Schema) -> None:
    table = described["tt_content"]
    plan = rollback_plan(table, [modified(header="a", colPos=1, categories="4"), modified()], {"uid": 1, "pid": 1})
    assert not_restored(table, plan, {"header": "a", "colPos": 1, "categories": 1, "pid": 1}) == []
    assert not_restored(table, plan, {"header": "b", "colPos": 0, "categories": 0, "pid": 1}) == ["header", "colPos"]
