"""History and log of a run (SEMANTICS 17, 19)."""

from __future__ import annotations

import hashlib
import json

from content_store.datahandler.handler import DataHandler, HandlerActor
from content_store.records.gateway import RecordGateway
from content_store.schema.model import Schema
from store_support.adapter import Connection
from store_support.site import ADMINISTRATOR, all_rows, open_handler


async def test_history_of_a_record_s_life(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process({"tt_content": {"NEW1": {"pid": 2, "title": "a"}}})
    uid = str(made.substNEWwithIDs["NEW1"])
    await handler.process({"tt_content": {uid: {"title": "b"}}})
    await handler.process(None, {"tt_content": {uid: {"move": 1}}})
    await handler.process(None, {"tt_content": {uid: {"delete": 1, "undelete": 1}}})
    rows = await all_rows(connection, "sys_history", tablename="tt_content", recuid=int(uid))
    assert [row["actiontype"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["history_data"] is None for row in rows] == [False, False, False, True, True]
    added, modified, moved = (json.loads(row["history_data"]) for row in rows[:3])
    assert added["title"] == "a"
    assert added["uid"] == int(uid)
    assert (modified["oldRecord"]["title"], modified["newRecord"]["title"]) == ("a", "b")
    assert set(modified["newRecord"]) == {"title", "l10n_diffsource"}
    assert (moved["oldData"]["pid"], moved["newData"]["pid"]) == (2, 1)
    assert set(moved["newData"]) == {"pid", "sorting", "tstamp"}
    subject = hashlib.md5(f"tt_content:{uid}".encode(), usedforsecurity=False).hexdigest()
    assert {row["correlation_id"] for row in rows} == {f"0400${made.correlation_id}:{subject}"}
    assert {(row["usertype"], row["userid"], row["workspace"]) for row in rows} == {("BE", 1, 0)}


async def test_history_follows_the_order_of_writes(connection: Connection, schema: Schema) -> None:
    entries = {f"NEW{i}": {"pid": 2, "title": str(i)} for i in range(5)}
    result = await open_handler(connection, schema).process({"tt_content": entries})
    rows = await all_rows(connection, "sys_history", tablename="tt_content")
    assert [row["recuid"] for row in rows] == [result.substNEWwithIDs[name] for name in entries]


async def test_history_of_relation_tables_names_uids(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process(
        {
            "sys_category": {"NEWa": {"pid": 0, "title": "a"}, "NEWb": {"pid": 0, "title": "b"}},
            "tt_content": {"NEW1": {"pid": 2, "title": "x", "categories": "NEWa"}},
        }
    )
    a, b, uid = (made.substNEWwithIDs[n] for n in ("NEWa", "NEWb", "NEW1"))
    await handler.process({"tt_content": {str(uid): {"categories": f"{b},{a}"}}})
    last = (await all_rows(connection, "sys_history", tablename="tt_content", recuid=uid))[-1]
    data = json.loads(last["history_data"])
    assert (data["oldRecord"]["categories"], data["newRecord"]["categories"]) == (f"{a}", f"{b},{a}")
    rows = await all_rows(connection, "sys_category_record_mm")
    assert {r["uid_local"]: r["sorting_foreign"] for r in rows} == {a: 2, b: 1}


async def test_switched_user_is_recorded(connection: Connection, schema: Schema) -> None:
    gateway = RecordGateway(connection, schema)
    handler = DataHandler(gateway, HandlerActor(ADMINISTRATOR, original_user=77))
    await handler.process({"tt_content": {"NEW1": {"pid": 2}}})
    assert {row["originaluserid"] for row in await all_rows(connection, "sys_history")} == {77}


async def test_log_has_messages_and_errors(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process({"tt_content": {"NEW1": {"pid": 2, "title": "a"}, "NEW2": {"pid": 99_999}}})
    assert [(o.status, o.code) for o in made.outcomes] == [("written", None), ("error", "page_not_found")]
    message, error = await all_rows(connection, "sys_log")
    assert (message["action"], message["error"], message["recuid"]) == (1, 0, made.substNEWwithIDs["NEW1"])
    assert json.loads(message["log_data"])["label"] == "a"
    assert message["event_pid"] == 2
    assert (error["action"], error["error"], error["code"]) == (1, 1, "page_not_found")
    assert error["details"] == "There is no page {page}"
    assert made.errorLog == ["There is no page 99999"]
