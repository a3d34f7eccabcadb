"""Random but plausible maps: nothing is left half-written, the index stays clean, the order stays consistent."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
from content_store.datahandler.refindex import check
from content_store.datahandler.run import HandlerOptions
from content_store.schema.model import Schema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_support.adapter import Connection, reset_sequences
from store_support.site import all_rows, open_handler

_OPTIONS = HandlerOptions(savepoint_single_entry=True)
_UIDS = st.integers(1, 5)
_PLACEHOLDERS = st.sampled_from(["NEW1", "NEW2", "NEW3"])
_LISTS = st.lists(st.one_of(_UIDS.map(str), _PLACEHOLDERS), max_size=3).map(",".join)
_COMMON: dict[str, st.SearchStrategy[Any]] = {
    "title": st.sampled_from(["a", "b", "refused", ""]),
    "hidden": st.integers(0, 1),
    "sys_language_uid": st.sampled_from([0, 0, 1, 2, -1]),
    "l10n_parent": st.one_of(st.just(0), _UIDS, _PLACEHOLDERS),
    "l10n_source": st.one_of(st.just(0), _UIDS),
}
_FIELDS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "pages": {**_COMMON, "slug": st.sampled_from(["", "/x"]), "doktype": st.sampled_from(["1", "254"])},
    "tt_content": {**_COMMON, "children": _LISTS, "categories": _LISTS, "related": _LISTS, "colPos": st.integers(0, 2)},
    "tx_child": {**_COMMON, "parentid": st.integers(0, 5), "parenttable": st.sampled_from(["tt_content", ""])},
    "sys_category": {"title": _COMMON["title"], "items": _LISTS.map(lambda t: t and f"tt_content_{t.split(',')[0]}")},
}
_PLACES = st.one_of(st.integers(0, 4), st.integers(-4, -1), st.sampled_from(["NEW1", "-NEW2"]))


@st.composite
def _datamaps(draw: st.DrawFn) -> dict[str, Any]:
    datamap: dict[str, Any] = {}
    for table in draw(st.lists(st.sampled_from(list(_FIELDS)), max_size=3, unique=True)):
        for key in draw(st.lists(st.one_of(_UIDS.map(str), _PLACEHOLDERS), min_size=1, max_size=3, unique=True)):
            names = draw(st.lists(st.sampled_from(list(_FIELDS[table])), max_size=4, unique=True))
            row = {name: draw(_FIELDS[table][name]) for name in names}
            if "NEW" in key:
                row["pid"] = draw(_PLACES)
            datamap.setdefault(table, {})[key] = row
    return datamap


def _values(command: str) -> st.SearchStrategy[Any]:
    if command in ("localize", "copyToLanguage"):
        return st.integers(1, 2)
    if command == "inlineLocalizeSynchronize":
        fields = {"field": st.just("children"), "language": st.integers(1, 2)}
        return st.fixed_dictionaries({**fields, "action": st.sampled_from(["localize", "synchronize"])})
    if command in ("copy", "move"):
        paste = {"action": st.just("paste"), "target": _PLACES.filter(lambda v: isinstance(v, int))}
        update = st.fixed_dictionaries({"colPos": st.integers(0, 2), "sys_language_uid": st.integers(0, 2)})
        return st.one_of(st.integers(-4, 4), st.fixed_dictionaries({**paste, "update": update}))
    return st.just(1)


_COMMANDS = ("copy", "move", "localize", "copyToLanguage", "delete", "undelete", "inlineLocalizeSynchronize")


@st.composite
def _cmdmaps(draw: st.DrawFn) -> dict[str, Any]:
    cmdmap: dict[str, Any] = {}
    for table in draw(st.lists(st.sampled_from(list(_FIELDS)), max_size=2, unique=True)):
        for key in draw(st.lists(_UIDS.map(str), min_size=1, max_size=2, unique=True)):
            command = draw(st.sampled_from(_COMMANDS))
            cmdmap.setdefault(table, {})[key] = {command: draw(_values(command))}
    return cmdmap


_RUNS = st.lists(st.tuples(_datamaps(), _cmdmaps()), min_size=1, max_size=4)
_START: dict[str, Any] = {
    "pages": {"NEWp": {"pid": 2, "title": "sub"}},
    "tt_content": {
        "NEWa": {"pid": 2, "title": "a", "children": "NEWc,NEWe", "categories": "NEWd"},
        "NEWb": {"pid": 2, "title": "b", "related": "NEWa"},
        "NEWf": {"pid": "NEWp", "title": "c", "children": "NEWg"},
    },
    "tx_child": {n: {"pid": 2, "title": n} for n in ("NEWc", "NEWe", "NEWg")},
    "sys_category": {"NEWd": {"pid": 0, "title": "d"}},
}


def test_random_runs_keep_everything_consistent(site_database: str, schema: Schema) -> None:
    # Given inside, so that a failure shows the maps and not the whole schema.
    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(runs=_RUNS)
    def play(runs: list[Any]) -> None:
        asyncio.run(_play(site_database, schema, runs))

    play()


async def _play(url: str, schema: Schema, runs: list[Any]) -> None:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await reset_sequences(connection, schema, "public")
        await connection.execute("ALTER TABLE public.tt_content ADD CONSTRAINT refuses CHECK (title <> 'refused')")
        assert not (await open_handler(connection, schema).process(_START)).failed
        assert not (await open_handler(connection, schema).process(None, {"pages": {"2": {"localize": 1}}})).failed
        for datamap, cmdmap in runs:
            result = await open_handler(connection, schema, options=_OPTIONS).process(datamap, cmdmap)
            assert all(o.code for o in result.failed)
            await _consistent(connection, schema)
    finally:
        await transaction.rollback()
        await connection.close()


async def _consistent(connection: Connection, schema: Schema) -> None:
    drift = await check(open_handler(connection, schema).ctx)
    assert drift.clean, drift
    pages = {row["uid"]: row for row in await all_rows(connection, "pages")}
    for row in pages.values():
        assert row["pid"] == 0 or row["pid"] in pages
        seen, at = set(), row["uid"]
        while at:
            assert at not in seen, "the tree has a circle"
            seen.add(at)
            at = pages[at]["pid"]
    history = {(r["tablename"], r["recuid"]) for r in await all_rows(connection, "sys_history", actiontype=1)}
    for table in ("tt_content", "tx_child", "sys_category"):
        for row in await all_rows(connection, table):
            assert row["title"] != "refused" or table != "tt_content"
            assert (table, row["uid"]) in history
            assert row["t3ver_oid"] == 0
