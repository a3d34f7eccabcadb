"""Value rules per field type (SEMANTICS 5)."""

from __future__ import annotations

from typing import Any

import pytest
from content_store.datahandler.run import HandlerOptions
from content_store.schema.model import Schema
from store_support.adapter import Connection
from store_support.site import all_rows, open_handler

_OPTIONS = HandlerOptions(
    hash_password=lambda text: f"$test${text[::-1]}", transform_rich_text=lambda text: f"<{text}>"
)

_TAKEN: list[tuple[str, Any, Any]] = [
    ("trimmed", "  abcdefghijkl ", "ABCDEFGHIJ"),
    ("trimmed", True, "1"),
    ("least", "ab", ""),
    ("least", "abc", "abc"),
    ("needed", "", "kept"),
    ("nullable", None, None),
    ("nullable", "x", "x"),
    ("body", "text", "<text>"),
    ("count", "250", 100),
    ("count", -5, 0),
    ("count", "7.9", 7),
    ("price", "3,456", "3.46"),
    ("price", 2, "2.00"),
    ("moment", "2026-01-02T03:04:05Z", 1767323045),
    ("moment", 1700000000, 1700000000),
    ("moment", "", 0),
    ("day", "2026-02-28", "2026-02-28"),
    ("day", "", None),
    ("clock", "13:37:00", "13:37:00"),
    ("instant", "2026-01-02T03:04:05+02:00", "2026-01-02 01:04:05"),
    ("mail", " a@example.org ", "a@example.org"),
    ("link", " t3://page?uid=1 ", "t3://page?uid=1"),
    ("tint", "#A0b1C2", "#A0b1C2"),
    ("country", "de", "DE"),
    ("secret", "abc", "$test$cba"),
    ("data", {"a": [1, None]}, '{"a": [1, null]}'),
    ("data", '{"b": 2}', '{"b": 2}'),
    ("ident", "AAAAAAAA-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"),
    ("mask", 9, 7),
    ("mask", -1, 0),
    ("choice", "b", "b"),
    ("kind", "y", "y"),
    ("kind", "", ""),
    ("several", "1,2,1", "1,2"),
    ("several", [1, 2], "1,2"),
    ("several", "1,-1,2", "-1"),
    ("anything", "as it is", "as it is"),
]

_REFUSED: list[tuple[str, Any]] = [
    ("trimmed", ["a"]),
    ("trimmed", {"a": 1}),
    ("trimmed", "a\x00b"),
    ("trimmed", "\ud800"),
    ("count", "many"),
    ("count", 2**63),
    ("count", "1" * 100),
    ("price", "1e400"),
    ("price", "NaN"),
    ("price", 10**11),
    ("moment", "yesterday"),
    ("day", "2026-02-30"),
    ("clock", "25:00"),
    ("mail", "nobody"),
    ("link", "javascript:alert(1)"),
    ("tint", "red"),
    ("country", "Germany"),
    ("data", "{broken"),
    ("data", '{"a": "\\u0000"}'),
    ("choice", "z"),
    ("several", [["a"]]),
    ("anything", {"a": 1}),
    ("needed", "a\x00"),
]


async def _written(connection: Connection, schema: Schema, field: str, value: Any) -> Any:
    handler = open_handler(connection, schema, options=_OPTIONS)
    result = await handler.process({"tx_values": {"NEW1": {"pid": 0, field: value}}})
    assert not result.failed, result.failed
    row = (await all_rows(connection, "tx_values"))[-1]
    stored = row[field]
    return stored if stored is None or isinstance(stored, int) else str(stored)


@pytest.mark.parametrize(("field", "value", "stored"), _TAKEN)
async def test_value_is_stored(connection: Connection, schema: Schema, field: str, value: Any, stored: Any) -> None:
    assert await _written(connection, schema, field, value) == stored


@pytest.mark.parametrize(("field", "value"), _REFUSED)
async def test_value_is_refused_whole(connection: Connection, schema: Schema, field: str, value: Any) -> None:
    handler = open_handler(connection, schema, options=_OPTIONS)
    result = await handler.process({"tx_values": {"NEW1": {"pid": 0, "least": "abc", field: value}}})
    assert [o.status for o in result.outcomes] == ["error"]
    assert result.outcomes[0].code in ("invalid_value", "value_not_storable")
    assert not await all_rows(connection, "tx_values")


@pytest.mark.parametrize(("field", "value"), _REFUSED)
async def test_refused_update_changes_nothing(connection: Connection, schema: Schema, field: str, value: Any) -> None:
    handler = open_handler(connection, schema, options=_OPTIONS)
    made = await handler.process({"tx_values": {"NEW1": {"pid": 0, "least": "before"}}})
    before = await all_rows(connection, "tx_values")
    uid = str(made.substNEWwithIDs["NEW1"])
    result = await handler.process({"tx_values": {uid: {"least": "after", field: value}}})
    assert result.outcomes[0].status == "error"
    assert await all_rows(connection, "tx_values") == before


async def test_required_uuid_is_made_and_copies_get_their_own(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process({"tx_values": {"NEW1": {"pid": 0}}})
    uid = str(made.substNEWwithIDs["NEW1"])
    await handler.process(None, {"tx_values": {uid: {"copy": 0}}})
    idents = {row["ident"] for row in await all_rows(connection, "tx_values")}
    assert len(idents) == 2
    assert all(len(ident) == 36 for ident in idents)


async def test_unique_values_get_numbers(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    entries = {f"NEW{i}": {"pid": i % 2 + 1, "single": "v", "single_here": "w"} for i in range(3)}
    await handler.process({"tx_values": entries})
    rows = await all_rows(connection, "tx_values")
    assert [row["single"] for row in rows] == ["v", "v0", "v1"]
    assert [(row["pid"], row["single_here"]) for row in rows] == [(1, "w"), (2, "w"), (1, "w0")]


async def test_deleted_rows_do_not_count_for_unique(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process({"tx_values": {"NEW1": {"pid": 0, "single": "v"}}})
    await handler.process(None, {"tx_values": {str(made.substNEWwithIDs["NEW1"]): {"delete": 1}}})
    await handler.process({"tx_values": {"NEW2": {"pid": 0, "single": "v"}}})
    assert [row["single"] for row in await all_rows(connection, "tx_values")] == ["v", "v"]


async def test_move_repairs_values_unique_on_the_page(connection: Connection, schema: Schema) -> None:
    handler = open_handler(connection, schema)
    made = await handler.process({"tx_values": {f"NEW{i}": {"pid": i, "single_here": "w"} for i in (1, 2)}})
    await handler.process(None, {"tx_values": {str(made.substNEWwithIDs["NEW1"]): {"move": 2}}})
    assert sorted(r["single_here"] for r in await all_rows(connection, "tx_values", pid=2)) == ["w", "w0"]


async def test_password_needs_a_hasher_and_copies_keep_the_hash(connection: Connection, schema: Schema) -> None:
    refused = await open_handler(connection, schema).process({"tx_values": {"NEW1": {"pid": 0, "secret": "abc"}}})
    assert refused.outcomes[0].code == "invalid_value"
    handler = open_handler(connection, schema, options=_OPTIONS)
    made = await handler.process({"tx_values": {"NEW1": {"pid": 0, "secret": "abc"}}})
    await handler.process(None, {"tx_values": {str(made.substNEWwithIDs["NEW1"]): {"copy": 0}}})
    assert [row["secret"] for row in await all_rows(connection, "tx_values")] == ["$test$cba", "$test$cba"]
    history = [row["history_data"] for row in await all_rows(connection, "sys_history")]
    assert not any("cba" in text or '"abc"' in text for text in history)
