"""How many statements the common operations take (CALLS 6, DESIGN 12)."""

from __future__ import annotations

import pytest
from content_store.schema.model import Schema
from store_support.adapter import Connection
from store_support.site import open_handler


async def _page_with(connection: Connection, schema: Schema, records: int) -> str:
    handler = open_handler(connection, schema)
    made = await handler.process({"pages": {"NEWpage": {"pid": 1, "title": f"With {records}"}}})
    page = made.substNEWwithIDs["NEWpage"]
    content = {f"NEW{i}": {"pid": page, "title": str(i), "children": f"NEWc{i}"} for i in range(records)}
    children = {f"NEWc{i}": {"pid": page, "title": str(i)} for i in range(records)}
    await handler.process({"tt_content": content, "tx_child": children})
    return str(page)


async def _statements_of_copy(connection: Connection, schema: Schema, records: int) -> tuple[int, int]:
    page = await _page_with(connection, schema, records)
    handler = open_handler(connection, schema)
    result = await handler.process(None, {"pages": {page: {"copy": 1}}})
    assert not result.failed
    return handler.ctx.gateway.statements, sum(len(copies) for copies in result.copyMappingArray.values())


async def test_copying_a_page_takes_few_statements_per_record(connection: Connection, schema: Schema) -> None:
    small, small_records = await _statements_of_copy(connection, schema, 10)
    large, large_records = await _statements_of_copy(connection, schema, 100)
    assert (small_records, large_records) == (21, 201)
    # A row for each, half an update that ties the children; every tenth record the page makes room.
    assert (large - small) / (large_records - small_records) <= 1.75
    assert small <= 1.75 * small_records + 25


async def test_new_records_on_one_page_ask_once_for_its_first(connection: Connection, schema: Schema) -> None:
    counted = []
    for size in (1, 6):
        handler = open_handler(connection, schema)
        entries = {f"NEW{n}": {"pid": "NEWp", "title": str(n)} for n in range(size)}
        result = await handler.process({"pages": {"NEWp": {"pid": 1, "title": f"p{size}"}}, "tt_content": entries})
        assert not result.failed
        counted.append(handler.ctx.gateway.statements)
    # Savepoint, row, release.
    assert counted[1] - counted[0] <= 3 * 5


async def test_update_of_one_record(connection: Connection, schema: Schema) -> None:
    made = await open_handler(connection, schema).process({"tt_content": {"NEW1": {"pid": 2, "title": "x"}}})
    handler = open_handler(connection, schema)
    result = await handler.process({"tt_content": {str(made.substNEWwithIDs["NEW1"]): {"title": "y"}}})
    assert result.outcomes[0].status == "written"
    # Row, its translations, update, history, log.
    assert handler.ctx.gateway.statements <= 5


@pytest.mark.parametrize("size", [1, 40])
async def test_update_does_not_depend_on_what_else_there_is(connection: Connection, schema: Schema, size: int) -> None:
    entries = {f"NEW{i}": {"pid": 2, "title": str(i)} for i in range(size)}
    made = await open_handler(connection, schema).process({"tt_content": entries})
    handler = open_handler(connection, schema)
    await handler.process({"tt_content": {str(made.substNEWwithIDs["NEW0"]): {"hidden": 1}}})
    assert handler.ctx.gateway.statements <= 8


async def test_deleting_a_page_writes_per_table(connection: Connection, schema: Schema) -> None:
    page = await _page_with(connection, schema, 30)
    handler = open_handler(connection, schema)
    assert not (await handler.process(None, {"pages": {page: {"delete": 1}}})).failed
    assert handler.ctx.gateway.statements <= 130
