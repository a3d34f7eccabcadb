"""New records and updates: placeholders, defaults, unchanged values, sorting, translations (SEMANTICS 2-7)."""

from __future__ import annotations

import json

from content_store.access.policy import BackendUser
from content_store.schema.model import Schema
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler


async def test_placeholders_of_later_entries_are_filled(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    result = await handler.process(
        {
            "tt_content": {"NEW1": {"pid": 2, "title": "parent", "children": "NEW2,NEW3"}},
            "tx_child": {"NEW2": {"pid": 2, "title": "a"}, "NEW3": {"pid": 2, "title": "b"}},
        }
    )
    assert not result.failed
    parent = result.substNEWwithIDs["NEW1"]
    children = await all_rows(connection, "tx_child", parentid=parent, parenttable="tt_content")
    assert [(c["title"], c["sorting"]) for c in children] == [("a", 1), ("b", 2)]
    assert (await all_rows(connection, "tt_content", uid=parent))[0]["children"] == 2


async def test_placeholders_live_across_process_calls(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    await handler.process({"pages": {"NEWpage": {"pid": 1, "title": "Sub", "hidden": 0}}})
    result = await handler.process({"tt_content": {"NEW1": {"pid": "NEWpage", "title": "on it"}}})
    page = result.substNEWwithIDs["NEWpage"]
    assert (await all_rows(connection, "tt_content", title="on it"))[0]["pid"] == page
    assert result.substNEWwithIDs_table["NEWpage"] == "pages"


async def test_unknown_placeholder_is_an_error_entry(connection: Connection, schema: Schema) -> None:
    result = await open_handler(connection, schema).process({"tt_content": {"NEW1": {"pid": "NEWnowhere"}}})
    assert [(o.status, o.code) for o in result.outcomes] == [("error", "unknown_placeholder")]
    assert not await all_rows(connection, "tt_content")


async def test_sorting_halves_and_renumbers(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    first = await handler.process({"tt_content": {f"NEW{i}": {"pid": 2, "title": str(i)} for i in range(4)}})
    rows = await all_rows(connection, "tt_content")
    assert [row["sorting"] for row in rows] == [256, 128, 64, 32]
    top = first.substNEWwithIDs["NEW3"]
    for _ in range(7):
        await handler.process({"tt_content": {"NEWafter": {"pid": -top}}})
    numbers = [row["sorting"] for row in await all_rows(connection, "tt_content")]
    assert len(set(numbers)) == len(numbers)
    assert min(numbers) > 0


async def test_unchanged_values_write_nothing(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process({"tx_values": {"NEW1": {"pid": 0, "trimmed": "A", "count": 5, "price": "1.50"}}})
    uid = str(made.substNEWwithIDs["NEW1"])
    history = len(await all_rows(connection, "sys_history"))
    again = await handler.process({"tx_values": {uid: {"trimmed": "a", "count": "5", "price": "1.5"}}})
    assert [o.status for o in again.outcomes] == ["unchanged"]
    assert len(await all_rows(connection, "sys_history")) == history


async def test_ignored_fields_are_named(connection: Connection, schema: Schema) -> None:
    result = await open_handler(connection, schema).process({"tt_content": {"NEW1": {"pid": 2, "nonsense": 1}}})
    assert result.outcomes[0].status == "written"
    assert "nonsense" in (result.outcomes[0].message or "")


async def test_system_columns_are_not_taken_from_the_row(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process({"tt_content": {"NEW1": {"pid": 2, "title": "x", "uid": 99, "t3ver_wsid": 7}}})
    row = (await all_rows(connection, "tt_content"))[0]
    assert (row["uid"], row["t3ver_wsid"]) == (made.substNEWwithIDs["NEW1"], 0)
    await handler.process({"tt_content": {str(row["uid"]): {"pid": 1, "deleted": 1, "title": "y"}}})
    row = (await all_rows(connection, "tt_content"))[0]
    assert (row["pid"], row["deleted"], row["title"]) == (2, 0, "y")


async def test_suggested_uid_needs_to_be_listed(connection: Connection, schema: Schema) -> None:
    result = await open_handler(connection, schema).process(
        {"tt_content": {"NEW1": {"pid": 2, "uid": 4711}}}, suggested_uids=[("tt_content", 4711)]
    )
    assert result.substNEWwithIDs["NEW1"] == 4711
    again = await open_handler(connection, schema).process(
        {"tt_content": {"NEW1": {"pid": 2, "uid": 4711}}}, suggested_uids=[("tt_content", 4711)]
    )
    assert again.outcomes[0].code == "uid_taken"


async def test_defaults_of_tsconfig_weaker_than_submitted(connection: Connection, schema: Schema) -> None:
    user = BackendUser(1, admin=True, tsconfig={"TCAdefaults.tt_content.colPos": "3", "TCAdefaults.tt_content.x": "1"})
    handler = open_handler(connection, schema, user=user)
    await handler.process({"pages": {"2": {"TSconfig": "TCAdefaults.tt_content.title = from page"}}})
    await handler.process({"tt_content": {"NEW1": {"pid": 2}, "NEW2": {"pid": 2, "title": "mine"}}})
    rows = await all_rows(connection, "tt_content")
    assert [(r["title"], r["colPos"]) for r in rows] == [("from page", 3), ("mine", 3)]


async def test_new_page_gets_owner_and_rights(connection: Connection, schema: Schema) -> None:
    user = BackendUser(5, admin=True, groups=(7, 8))
    await open_handler(connection, schema, user=user).process({"pages": {"NEW1": {"pid": 1, "title": "Mine"}}})
    row = (await all_rows(connection, "pages", title="Mine"))[0]
    rights = [row[n] for n in ("perms_userid", "perms_groupid", "perms_user", "perms_group", "perms_everybody")]
    assert rights == [5, 7, 31, 27, 0]


async def test_excluded_fields_reach_translations(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    await handler.process(None, {"pages": {"2": {"localize": 1}}})
    made = await handler.process({"tt_content": {"NEW1": {"pid": 2, "title": "x"}}})
    uid = str(made.substNEWwithIDs["NEW1"])
    await handler.process(None, {"tt_content": {uid: {"localize": 1}}})
    result = await handler.process({"tt_content": {uid: {"colPos": 2}}})
    assert [o.status for o in result.outcomes] == ["written", "written"]
    translation = (await all_rows(connection, "tt_content", sys_language_uid=1))[0]
    assert translation["colPos"] == 2
    assert json.loads(translation["l10n_diffsource"])["colPos"] == "2"


async def test_language_minus_one_and_below(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    result = await handler.process(
        {
            "tt_content": {
                "NEW1": {"pid": 2, "title": "all", "sys_language_uid": -1},
                "NEW2": {"pid": 2, "sys_language_uid": -2},
            }
        }
    )
    assert [o.status for o in result.outcomes] == ["written", "error"]
    assert (await all_rows(connection, "tt_content"))[0]["sys_language_uid"] == -1


async def test_record_the_commands_delete_leaves_the_datamap(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process({"tt_content": {"NEW1": {"pid": 2, "title": "x"}}})
    uid = str(made.substNEWwithIDs["NEW1"])
    result = await handler.process({"tt_content": {uid: {"title": "y"}}}, {"tt_content": {uid: {"delete": 1}}})
    assert [(o.operation, o.status) for o in result.outcomes] == [("delete", "written")]
    row = (await all_rows(connection, "tt_content"))[0]
    assert (row["title"], row["deleted"]) == ("x", 1)
