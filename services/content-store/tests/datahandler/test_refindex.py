"""The reference index: kept by runs, checked and rebuilt (SEMANTICS 18)."""

from __future__ import annotations

from content_store.datahandler.refindex import check, rebuild
from content_store.datahandler.softref import find_soft_references
from content_store.schema.model import Schema
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler


async def _three(connection: Connection, schema: Schema) -> None:
    made = await open_handler(connection, schema).process(
        {
            "tt_content": {
                "NEW1": {"pid": 2, "children": "NEW2", "categories": "NEW3"},
                "NEW4": {"pid": 2, "related": "NEW1"},
            },
            "tx_child": {"NEW2": {"pid": 2}},
            "sys_category": {"NEW3": {"pid": 0, "title": "c"}},
        }
    )
    assert not made.failed


async def test_check_reports_drift_and_rebuild_repairs_it(connection: Connection, schema: Schema) -> None:
    await _three(connection, schema)
    assert (await check(open_handler(connection, schema).ctx)).clean
    rows = await all_rows(connection, "sys_refindex")
    assert len(rows) == 3
    await connection.execute("DELETE FROM sys_refindex WHERE tablename = 'sys_category'")
    await connection.execute("UPDATE sys_refindex SET hash = repeat('0', 32) WHERE field = 'related'")
    drift = await rebuild(open_handler(connection, schema).ctx)
    assert (len(drift.missing), drift.surplus) == (2, ["0" * 32])
    assert (await check(open_handler(connection, schema).ctx)).clean
    assert sorted(r["hash"] for r in await all_rows(connection, "sys_refindex")) == sorted(r["hash"] for r in rows)


async def test_state_of_targets_is_repeated(connection: Connection, schema: Schema) -> None:
    await _three(connection, schema)
    child = (await all_rows(connection, "tx_child"))[0]["uid"]
    await open_handler(connection, schema).process({"tx_child": {str(child): {"hidden": 1}}})
    assert (await all_rows(connection, "sys_refindex", ref_table="tx_child"))[0]["ref_hidden"] == 1
    assert (await check(open_handler(connection, schema).ctx)).clean


async def test_a_child_that_changes_its_parent(connection: Connection, schema: Schema) -> None:
    await _three(connection, schema)
    child = (await all_rows(connection, "tx_child"))[0]["uid"]
    other = (await all_rows(connection, "tt_content"))[1]["uid"]
    await open_handler(connection, schema).process({"tt_content": {str(other): {"children": str(child)}}})
    assert [r["recuid"] for r in await all_rows(connection, "sys_refindex", ref_table="tx_child")] == [other]
    assert (await check(open_handler(connection, schema).ctx)).clean


async def _siblings(connection: Connection, schema: Schema) -> tuple[int, int]:
    """Two children of one record, on two pages."""
    made = await open_handler(connection, schema).process(
        {
            "tt_content": {"NEW1": {"pid": 2, "children": "NEW2,NEW3"}},
            "tx_child": {"NEW2": {"pid": 2}, "NEW3": {"pid": 1}},
        }
    )
    assert not made.failed
    return made.substNEWwithIDs["NEW2"], made.substNEWwithIDs["NEW3"]


async def _order(connection: Connection) -> list[int]:
    rows = await all_rows(connection, "sys_refindex", ref_table="tx_child")
    return [row["ref_uid"] for row in sorted(rows, key=lambda row: row["sorting"])]


async def test_a_child_that_is_moved_behind_the_other(connection: Connection, schema: Schema) -> None:
    first, second = await _siblings(connection, schema)
    assert not (await open_handler(connection, schema).process(None, {"tx_child": {first: {"move": -second}}})).failed
    assert await _order(connection) == [second, first]
    assert (await check(open_handler(connection, schema).ctx)).clean


async def test_children_that_make_room_for_others(connection: Connection, schema: Schema) -> None:
    first, second = await _siblings(connection, schema)
    entries = {f"NEW{n}": {"pid": 2} for n in range(3)}
    assert not (await open_handler(connection, schema).process({"tx_child": entries})).failed
    assert await _order(connection) == [second, first]
    assert (await check(open_handler(connection, schema).ctx)).clean


async def test_soft_references_are_indexed(connection: Connection, schema: Schema) -> None:
    body = "<p><a href=\"t3://page?uid=2#5\">a</a> <a href='mailto:a@example.org'>b</a> https://example.org/x</p>"
    entry = {"pid": 0, "body": body, "link": "t3://file?uid=7 _blank"}
    await open_handler(connection, schema).process({"tx_values": {"NEW1": entry}})
    rows = await all_rows(connection, "sys_refindex", tablename="tx_values")
    found = sorted((r["field"], r["softref_key"], r["ref_table"], r["ref_uid"], r["ref_string"]) for r in rows)
    assert found == [
        ("body", "email", "_STRING", 0, "a@example.org"),
        ("body", "typolink_tag", "_STRING", 0, "a@example.org"),
        ("body", "typolink_tag", "pages", 2, ""),
        ("body", "url", "_STRING", 0, "https://example.org/x"),
        ("link", "typolink", "sys_file", 7, ""),
    ]
    assert (await check(open_handler(connection, schema).ctx)).clean


def test_links_that_are_none() -> None:
    assert find_soft_references("t3://page?uid=0", ["typolink"]) == []
    assert find_soft_references("t3://record?identifier=x&uid=3", ["typolink"]) == []
    assert [r.uid for r in find_soft_references("12 _top", ["typolink"])] == [12]
