"""The number of statements is fixed, whatever is asked for."""

from __future__ import annotations

import asyncio

import pytest
from content_store.access.readable import Viewer
from content_store.access.users import load_user
from content_store.datahandler.sites import Sites
from content_store.schema.model import Schema
from content_store.visibility.links import LinkTemplates
from content_store.visibility.service import VisibilityService
from remit_contracts.visibility import MAX_VISIBILITY, RecordKey, VisibilityRequest
from service_kit.statements import StatementCounter
from store_support.rows import Connection, Rows


@pytest.mark.req("R-090")
async def test_statements_do_not_grow_with_the_records(connection: Connection, rows: Rows, schema: Schema) -> None:
    await rows.page(1, 0, everybody=1)
    for page in range(2, 102):
        await rows.page(page, page - 1 if page % 10 else 1, everybody=1)
    for element in range(1, 301):
        await rows.content(element, 2 + element % 100, sys_language_uid=element % 2)
    for uid in range(1, 101):
        await rows.add("sys_file", uid=uid, storage=1, identifier=f"/a/{uid}", name=f"{uid}")
    await rows.add("sys_filemounts", uid=1, identifier="1:/a/", title="a")
    await rows.add(
        "be_groups", uid=1, tables_select="pages,tt_content,sys_file", db_mountpoints="1", file_mountpoints="1",
        title="g", allowed_languages="0,1",
    )  # fmt: skip
    await rows.user(1, "ed", "1")
    keys = [RecordKey(table="pages", uid=uid) for uid in range(2, 102)]
    keys += [RecordKey(table="tt_content", uid=uid) for uid in range(1, 301)]
    keys += [RecordKey(table="sys_file", uid=uid) for uid in range(1, 101)]
    assert len(keys) == MAX_VISIBILITY
    loaded = await load_user(connection, 1)
    assert loaded is not None
    service = VisibilityService(connection, schema, Sites(), LinkTemplates())
    counter = StatementCounter()
    counter.attach(connection)
    counts: list[int] = []
    for amount in (1, 250, MAX_VISIBILITY):
        asked = [*keys[-1:], *keys[: amount - 1]]
        await asyncio.sleep(0)
        counter.reset()
        answer = await service.answer(VisibilityRequest(records=asked), Viewer(loaded.user))
        await asyncio.sleep(0)
        counts.append(len([s for s in counter.statements if "public" in s]))
        assert answer.withheld == 0
    assert counts[1:] == [3, 3]
    assert counts[0] <= 3
