"""One entry the database refuses is undone alone; what ends a call ends it (CALLS 1)."""

from __future__ import annotations

import asyncpg
import pytest
from content_store.datahandler.errors import CallMustEnd, StatementRefused, TransactionLost
from content_store.datahandler.hooks import DataHandlerHook, Fields, HookVeto, Status
from content_store.datahandler.run import HandlerOptions, HandlerRun
from content_store.schema.model import Schema
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler


@pytest.fixture
async def refusing(connection: Connection) -> Connection:
    await connection.execute("ALTER TABLE public.tt_content ADD CONSTRAINT refuses CHECK (title <> 'refused')")
    return connection


async def test_refused_entry_is_undone_alone(refusing: Connection, schema: Schema) -> None:
    result = await open_handler(refusing, schema).process(
        {
            "tt_content": {
                "NEW1": {"pid": 2, "title": "one"},
                "NEW2": {"pid": 2, "title": "refused"},
                "NEW3": {"pid": 2, "title": "three", "related": "NEW2,NEW1"},
            }
        }
    )
    assert [(o.status, o.code) for o in result.outcomes] == [
        ("written", None),
        ("error", "database_refused"),
        ("written", None),
    ]
    assert "NEW2" not in result.substNEWwithIDs
    rows = await all_rows(refusing, "tt_content")
    assert [row["title"] for row in rows] == ["one", "three"]
    assert rows[1]["related"] == str(result.substNEWwithIDs["NEW1"])
    assert len(await all_rows(refusing, "sys_history", tablename="tt_content", actiontype=1)) == 2


async def test_message_of_the_database_stays_inside(refusing: Connection, schema: Schema) -> None:
    entries = {"NEW1": {"pid": 2, "title": "refused"}, "NEW2": {"pid": 2}}
    result = await open_handler(refusing, schema).process({"tt_content": entries})
    assert result.outcomes[0].message == "The database refused the entry (23514)"


async def test_single_entry_has_no_savepoint_and_leaves(refusing: Connection, schema: Schema) -> None:
    with pytest.raises(StatementRefused):
        await open_handler(refusing, schema).process({"tt_content": {"NEW1": {"pid": 2, "title": "refused"}}})


async def test_single_entry_with_the_setting(refusing: Connection, schema: Schema) -> None:
    handler = open_handler(refusing, schema, options=HandlerOptions(savepoint_single_entry=True))
    result = await handler.process({"tt_content": {"NEW1": {"pid": 2, "title": "refused"}}})
    assert result.outcomes[0].code == "database_refused"
    assert not (await handler.process({"tt_content": {"NEW1": {"pid": 2, "title": "fine"}}})).failed


async def test_copy_that_is_refused_leaves_nothing(refusing: Connection, schema: Schema) -> None:
    made = await open_handler(refusing, schema).process(
        {
            "tt_content": {"NEW1": {"pid": 2, "title": "x", "children": "NEW2", "categories": "NEW3"}},
            "tx_child": {"NEW2": {"pid": 2}},
            "sys_category": {"NEW3": {"pid": 0, "title": "c"}},
        }
    )
    await refusing.execute("ALTER TABLE public.tt_content ADD CONSTRAINT once UNIQUE (categories, children)")
    before = [await all_rows(refusing, t) for t in ("tt_content", "tx_child", "sys_category_record_mm", "sys_refindex")]
    uid = str(made.substNEWwithIDs["NEW1"])
    result = await open_handler(refusing, schema).process(None, {"tt_content": {uid: {"copy": 2}}})
    assert result.outcomes[0].code == "database_refused"
    after = [await all_rows(refusing, t) for t in ("tt_content", "tx_child", "sys_category_record_mm", "sys_refindex")]
    assert after == before


class KeepsOut(DataHandlerHook):
    """Lets nothing with this title be written."""

    async def post_process_field_array(
        self, run: HandlerRun, status: Status, table: str, record_id: str, fields: Fields
    ) -> None:
        if fields.get("title") == "secret":
            raise HookVeto("Not this one")


async def test_a_record_kept_out_of_a_page_copy_leaves_no_children(connection: Connection, schema: Schema) -> None:
    entries = {
        "tt_content": {
            "NEW1": {"pid": 2, "title": "secret", "children": "NEW2"},
            "NEW3": {"pid": 2, "title": "open", "children": "NEW4"},
        },
        "tx_child": {"NEW2": {"pid": 0, "title": "a"}, "NEW4": {"pid": 0, "title": "b"}},
    }
    relaxed = schema.with_change(["tx_child", "ctrl", "rootLevel"], -1)
    assert not (await open_handler(connection, relaxed).process(entries)).failed
    result = await open_handler(connection, relaxed, [KeepsOut()]).process(None, {"pages": {"2": {"copy": 1}}})
    assert [o.status for o in result.outcomes] == ["written"]
    assert result.errorLog == ["Not this one"]
    copied = [r["title"] for r in await all_rows(connection, "tt_content", pid=result.outcomes[0].uid)]
    assert copied == ["open"]
    assert sorted(r["title"] for r in await all_rows(connection, "tx_child")) == ["a", "b", "b"]
    assert len(result.copyMappingArray["tx_child"]) == 1


async def test_cancelled_statement_ends_the_call(connection: Connection, schema: Schema) -> None:
    await connection.execute(
        "CREATE FUNCTION public.sleeps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(5); RETURN NEW; END $$"
    )
    await connection.execute(
        "CREATE TRIGGER slow BEFORE INSERT ON public.tt_content FOR EACH ROW EXECUTE FUNCTION public.sleeps()"
    )
    await connection.execute("SET LOCAL statement_timeout = 50")
    handler = open_handler(connection, schema)
    with pytest.raises(CallMustEnd) as raised:
        await handler.process({"tt_content": {"NEW1": {"pid": 2}, "NEW2": {"pid": 2}}})
    assert raised.value.sqlstate == "57014"


async def test_lost_transaction_is_noticed(site_database: str, schema: Schema) -> None:
    connection = await asyncpg.connect(site_database)
    try:
        transaction = connection.transaction()
        await transaction.start()
        handler = open_handler(connection, schema)
        await connection.execute("ROLLBACK")
        with pytest.raises(TransactionLost):
            await handler.process({"tt_content": {"NEW1": {"pid": 2}}})
    finally:
        await connection.close()


async def test_snapshot_and_restore_of_the_caller(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    await handler.process({"tt_content": {"NEW1": {"pid": 2, "title": "kept"}}})
    snapshot = handler.snapshot()
    savepoint = connection.transaction()
    await savepoint.start()
    await handler.process({"tt_content": {"NEW2": {"pid": 2, "title": "gone"}}})
    await savepoint.rollback()
    handler.restore(snapshot)
    assert list(handler.placeholders) == ["NEW1"]
    assert len(handler.ctx.outcomes) == 1
    result = await handler.process({"tt_content": {"NEW3": {"pid": 2, "related": "NEW1,NEW2"}}})
    last = (await all_rows(connection, "tt_content"))[-1]
    assert last["related"] == str(result.substNEWwithIDs["NEW1"])


async def test_one_of_the_copies_that_come_along_is_refused(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    entries = {
        f"NEW{n}": {"pid": 2, "title": title, "children": f"NEWc{n}"} for n, title in enumerate(("a", "refused", "c"))
    }
    await handler.process({"tt_content": entries, "tx_child": {f"NEWc{n}": {"pid": 2} for n in range(3)}})
    # A copy has the title of its source, which was there before the rule.
    await connection.execute(
        "ALTER TABLE public.tt_content ADD CONSTRAINT refuses CHECK (title <> 'refused') NOT VALID"
    )
    result = await handler.process(None, {"pages": {"2": {"copy": 1}}})
    assert (result.outcomes[0].status, len(result.errorLog)) == ("written", 1)
    assert "The database refused the entry" in result.errorLog[0]
    page = result.outcomes[0].uid
    copies = await all_rows(connection, "tt_content", pid=page)
    assert sorted(row["title"] for row in copies) == ["a", "c"]
    # The child of the refused one stays behind: a copy of its own would be one child more of the original.
    children = {row["parentid"] for row in await all_rows(connection, "tx_child", pid=page)}
    assert children == {row["uid"] for row in copies}
    assert len(await all_rows(connection, "sys_log", code="database_refused")) == 1
