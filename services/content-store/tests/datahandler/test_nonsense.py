"""Whatever comes in as JSON: an outcome per entry, never an exception, never half an entry (S-42)."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest
from content_store.datahandler.entries import is_placeholder, read_cmdmap, read_datamap, read_uid
from content_store.datahandler.refindex import check
from content_store.datahandler.run import HandlerOptions
from content_store.schema.model import Schema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_support.adapter import Connection, reset_sequences
from store_support.site import all_rows, open_handler

_OPTIONS = HandlerOptions(savepoint_single_entry=True)


@pytest.mark.req("S-42")
@pytest.mark.parametrize(
    "key", ["0", "-1", "+5", " 5", "5 ", "05", "5.0", "٥", "", "9223372036854775808", "1e3", "None"]
)
def test_odd_uids_are_no_uids(key: str) -> None:
    assert read_uid(key) is None
    assert not is_placeholder(key)


@pytest.mark.parametrize("key", [True, 0, -3, 2**63, 5.0, None])
def test_odd_values_are_no_uids(key: object) -> None:
    assert read_uid(key) is None


@pytest.mark.parametrize("key", ["NEW", "NEW1", "xNEWy-1.2:3"])
def test_placeholders(key: str) -> None:
    assert is_placeholder(key)


@pytest.mark.parametrize("key", ["new1", "NEW 1", "NEW\x00", "NEW,2", "NEW" + "x" * 300])
def test_no_placeholders(key: str) -> None:
    assert not is_placeholder(key)


@pytest.mark.parametrize("raw", [5, "x", [1], True])
def test_maps_that_are_none(schema: Schema, raw: object) -> None:
    assert [e.code for e in read_datamap(raw, schema).errors] == ["invalid_datamap"]
    assert [e.code for e in read_cmdmap(raw, schema).errors] == ["invalid_cmdmap"]


_CASES: list[tuple[Any, Any, str]] = [
    ({"nowhere": {"1": {"a": 1}}}, None, "unknown_table"),
    ({"tt\x00": {"1": {}}}, None, "unknown_table"),
    ({"tt_content": [1]}, None, "invalid_datamap"),
    ({"tt_content": {"+5": {"title": "x"}}}, None, "invalid_record_id"),
    ({"tt_content": {"1": "x"}}, None, "invalid_row"),
    ({"tt_content": {"999999": {"title": "x"}}}, None, "record_not_found"),
    ({"tt_content": {"NEW1": {"title": "x"}}}, None, "missing_page"),
    ({"tt_content": {"NEW1": {"pid": [2]}}}, None, "missing_page"),
    ({"tt_content": {"NEW1": {"pid": 2**63}}}, None, "missing_page"),
    ({"tt_content": {"NEW1": {"pid": -999999}}}, None, "anchor_not_found"),
    ({"tt_content": {"NEW1": {"pid": 2, "title": {"a": 1}}}}, None, "invalid_value"),
    ({"tt_content": {"NEW1": {"pid": 2, "related": {"a": 1}}}}, None, "invalid_value"),
    ({"tt_content": {"NEW1": {"pid": 2, "sys_language_uid": "x"}}}, None, "invalid_value"),
    ({"tt_content": {"NEW1": {"pid": 2, "l10n_parent": "9" * 30}}}, None, "invalid_value"),
    (None, {"tt_content": {"NEW1": {"delete": 1}}}, "invalid_record_id"),
    (None, {"tt_content": {"1": "delete"}}, "invalid_cmdmap"),
    (None, {"pages": {"2": {"explode": 1}}}, "unknown_command"),
    (None, {"pages": {"2": {"copy": "somewhere"}}}, "invalid_value"),
    (None, {"pages": {"2": {"move": None}}}, "invalid_value"),
    (None, {"pages": {"2": {"localize": "x"}}}, "unknown_language"),
    (None, {"pages": {"2": {"localize": 77}}}, "unknown_language"),
    (None, {"pages": {"2": {"version": {"action": "new"}}}}, "workspaces_unavailable"),
    (None, {"pages": {"2": {"inlineLocalizeSynchronize": []}}}, "invalid_value"),
    (None, {"pages": {"2": {"undelete": 1}}}, "not_deleted"),
    (None, {"pages": {"1": {"move": 2}}}, "move_into_branch"),
    (None, {"tx_values": {"1": {"localize": 1}}}, "table_without_language"),
    (None, {"tt_content": {"424242": {"delete": 1}}}, "record_not_found"),
]


@pytest.mark.parametrize(("datamap", "cmdmap", "code"), _CASES)
async def test_a_mistake_is_an_outcome(
    connection: Connection, schema: Schema, datamap: Any, cmdmap: Any, code: str
) -> None:
    tables = ("pages", "tt_content", "tx_values")
    before = [await all_rows(connection, table) for table in tables]
    result = await open_handler(connection, schema, options=_OPTIONS).process(datamap, cmdmap)
    assert [(o.status, o.code) for o in result.outcomes] == [("error", code)]
    assert len(result.errorLog) == 1
    assert [await all_rows(connection, table) for table in tables] == before


_TEXTS = st.one_of(
    st.sampled_from(["1", "2", "-1", "NEW1", "NEW2", "", "0", "\x00", "1,2", "tt_content_NEW1"]), st.text(max_size=8)
)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 4), st.sampled_from([2**63, 1.5, -(2**70)]), _TEXTS)
_ANYTHING = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2), max_leaves=4
)
_FIELDS = st.sampled_from(
    [
        "pid",
        "title",
        "children",
        "categories",
        "related",
        "sys_language_uid",
        "l10n_parent",
        "l10n_source",
        "l10n_state",
        "hidden",
        "slug",
        "parentid",
        "items",
        "count",
        "data",
        "several",
        "single",
        "nonsense",
        "colPos",
        "uid",
        "sorting",
    ]
)
_TABLES = st.sampled_from(["pages", "tt_content", "tx_child", "sys_category", "tx_values", "nowhere"])
_KEYS = st.one_of(st.sampled_from(["1", "2", "3", "4", "NEW1", "NEW2"]), _TEXTS)
_ROWS = st.one_of(_ANYTHING, st.dictionaries(_FIELDS, _ANYTHING, max_size=5))
_DATAMAPS = st.one_of(_ANYTHING, st.dictionaries(_TABLES, st.dictionaries(_KEYS, _ROWS, max_size=3), max_size=3))
_COMMANDS = st.sampled_from(
    [
        "copy",
        "move",
        "localize",
        "copyToLanguage",
        "delete",
        "undelete",
        "inlineLocalizeSynchronize",
        "version",
        "bogus",
    ]
)
_VALUES = st.one_of(
    st.integers(-4, 4),
    _ANYTHING,
    st.fixed_dictionaries({"action": st.just("paste"), "target": st.integers(-4, 4), "update": _ROWS}),
    st.fixed_dictionaries({"field": _FIELDS, "language": st.integers(0, 2), "action": st.just("synchronize")}),
)
_CMDMAPS = st.one_of(
    _ANYTHING,
    st.dictionaries(
        _TABLES, st.dictionaries(_KEYS, st.dictionaries(_COMMANDS, _VALUES, max_size=2), max_size=2), max_size=2
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(runs=st.lists(st.tuples(_DATAMAPS, _CMDMAPS), min_size=1, max_size=3))
def test_random_maps_never_raise(site_database: str, schema: Schema, runs: list[tuple[Any, Any]]) -> None:
    asyncio.run(_play(site_database, schema, runs))


async def _play(url: str, schema: Schema, runs: list[tuple[Any, Any]]) -> None:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        # Sequences do not roll back: the uids have to be the ones the maps name.
        await reset_sequences(connection, schema, "public")
        start = {
            "tt_content": {"NEWa": {"pid": 2, "title": "a", "children": "NEWc"}, "NEWb": {"pid": 2, "related": "NEWa"}},
            "tx_child": {"NEWc": {"pid": 2, "title": "c"}},
            "sys_category": {"NEWd": {"pid": 0, "title": "d", "items": "tt_content_NEWa"}},
        }
        assert not (await open_handler(connection, schema).process(start)).failed
        for datamap, cmdmap in runs:
            result = await open_handler(connection, schema, options=_OPTIONS).process(datamap, cmdmap)
            assert all(o.code for o in result.failed)
        drift = await check(open_handler(connection, schema).ctx)
        assert drift.clean, drift
        for table in ("pages", "tt_content", "tx_child"):
            for row in await all_rows(connection, table):
                assert row["t3ver_oid"] == 0
                assert row["pid"] >= 0
    finally:
        await transaction.rollback()
        await connection.close()
