"""A copied page is a page of its own: nothing of it joins the original, nothing comes twice (SEMANTICS 9, 13)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

import asyncpg
import pytest
from content_store.access.policy import BackendUser, Denial, Row
from content_store.datahandler.policy import AdministratorPolicy
from content_store.datahandler.refindex import check, rebuild
from content_store.datahandler.relations.foreign_field import belongs
from content_store.records.gateway import RecordGateway
from content_store.records.overlay import OverlayReader
from content_store.schema.loader import load_schema
from content_store.schema.model import Schema
from remit_harness.databases import Databases, built
from remit_harness.run import TestRun
from store_support.adapter import Connection
from store_support.rows import Rows, create_tables
from store_support.site import all_rows, open_handler

#: Pages of the tree before anything is copied: the source is the upper of the two branches.
_SOURCE, _TARGET = 2, 3
_TABLES: Final = ("pages", "tt_content", "sys_file_reference", "sys_category", "sys_category_record_mm")
_FILES: Final = ("image", "assets", "media")
_Shape = dict[str, Any]


class _Editor(AdministratorPolicy):
    """May copy pages, but not their media, and no content of the type ``html``."""

    async def edit_record(
        self, table: str, row: Row, *, new: bool = False, all_languages: bool = False
    ) -> Denial | None:
        return Denial("auth_mode", "No") if row.get("CType") == "html" else None

    def may_write_field(self, table: str, field: str) -> bool:
        return (table, field) != ("pages", "media")


@pytest.fixture(scope="module")
def shipped() -> Schema:
    return load_schema()


@pytest.fixture(scope="module")
def shipped_database(postgres: str, test_run: TestRun, shipped: Schema) -> Iterator[str]:
    async def build(databases: Databases) -> str:
        url = await databases.create("dh_shipped")
        connection = await asyncpg.connect(url)
        await create_tables(connection, shipped)
        rows = Rows(connection, shipped)
        await rows.page(1, 0, "Root", slug="/", is_siteroot=1, sorting=256)
        await rows.page(_SOURCE, 1, "Source", slug="/source", sorting=256)
        await rows.page(_TARGET, 1, "Target", slug="/target", sorting=512)
        await connection.execute("SELECT setval(pg_get_serial_sequence('public.pages', 'uid'), 10)")
        for uid in range(1, 6):
            await rows.add("sys_file", uid=uid, identifier=f"/{uid}.png", name=f"{uid}.png")
            await rows.add("sys_category", uid=uid, pid=0, title=f"Category {uid}")
        await connection.close()
        return url

    yield from built(postgres, test_run, build)


@pytest.fixture
async def tree(shipped_database: str) -> AsyncIterator[Connection]:
    found = await asyncpg.connect(shipped_database)
    transaction = found.transaction()
    await transaction.start()
    try:
        yield found
    finally:
        await transaction.rollback()
        await found.close()


# --- a branch, and what it looks like -----------------------------------------------------------------------------


class _Branch:
    """Fills the source page and two levels below it, by chance but the same for the same seed."""

    def __init__(self, connection: Connection, schema: Schema, seed: int) -> None:
        self._handler = open_handler(connection, schema)
        self._chance = random.Random(seed)  # noqa: S311
        self._number = 0

    async def fill(self) -> None:
        await self._page(_SOURCE)
        below = await self._made({"pages": {"NEWp": self._page_row(_SOURCE)}}, "NEWp")
        await self._page(below)
        await self._page(await self._made({"pages": {"NEWp": self._page_row(below)}}, "NEWp"))

    def _page_row(self, pid: int) -> dict[str, Any]:
        self._number += 1
        return {"pid": pid, "title": f"page {self._number}", "hidden": 0}

    async def _page(self, page: int) -> None:
        await self._with_files("pages", page, page, "media", 1)
        for _ in range(self._chance.randint(1, 2)):
            await self._content(page)
        for language in (1, 2)[: self._chance.randint(0, 2)]:
            await self._run(None, {"pages": {str(page): {"localize": language}}})
            for row in (await self._handler.ctx.reader.lookup("tt_content", "pid", [page])).get(page, []):
                if row["sys_language_uid"] == 0 and self._chance.random() < 0.7:
                    how = self._chance.choice(["localize", "copyToLanguage"])
                    await self._run(None, {"tt_content": {str(row["uid"]): {how: language}}})

    async def _content(self, page: int) -> None:
        self._number += 1
        kind = self._chance.choice(["text", "text", "html"])
        listed = ",".join(str(uid) for uid in self._chance.sample(range(1, 6), self._chance.randint(0, 2)))
        row = {"pid": page, "CType": kind, "header": f"content {self._number}", "categories": listed}
        uid = await self._made({"tt_content": {"NEWe": row}}, "NEWe")
        for field in _FILES:
            await self._with_files("tt_content", uid, page, field, self._chance.randint(0, 2))

    async def _with_files(self, table: str, uid: int, page: int, field: str, count: int) -> None:
        names = [f"NEWf{number}" for number in range(count)]
        references: dict[str, dict[str, Any]] = {}
        for name in names:
            self._number += 1
            references[name] = {
                "pid": page,
                "uid_local": self._chance.randint(1, 5),
                "title": f"file {self._number}",
            }
        if names:
            await self._run({table: {str(uid): {field: ",".join(names)}}, "sys_file_reference": references})

    async def _made(self, datamap: dict[str, Any], name: str) -> int:
        result = await self._handler.process(datamap)
        assert not result.failed, result.errorLog
        return result.substNEWwithIDs[name]

    async def _run(self, datamap: dict[str, Any] | None, cmdmap: dict[str, Any] | None = None) -> None:
        result = await self._handler.process(datamap, cmdmap)
        assert not result.failed, result.errorLog


async def _state(connection: Connection) -> dict[str, list[Mapping[str, Any]]]:
    return {table: await all_rows(connection, table) for table in _TABLES}


def _files(state: Mapping[str, list[Mapping[str, Any]]], table: str, row: Mapping[str, Any]) -> list[Any]:
    fields = ("media",) if table == "pages" else _FILES
    listed = []
    for field in fields:
        found = [
            r
            for r in state["sys_file_reference"]
            if (r["tablenames"], r["uid_foreign"], r["fieldname"]) == (table, row["uid"], field) and not r["deleted"]
        ]
        found.sort(key=lambda r: r["sorting_foreign"])
        # The field counts what points to the record.
        assert row[field] == len(found)
        listed.append([(r["uid_local"], r["title"], r["sys_language_uid"], r["l10n_parent"] > 0) for r in found])
    return listed


def _shape(state: Mapping[str, list[Mapping[str, Any]]], page: int, levels: int) -> _Shape:
    """What a page is to a reader: its files and translations, its content, and the pages below."""
    row = next(r for r in state["pages"] if r["uid"] == page)
    translations = [r for r in state["pages"] if r["l10n_parent"] == page]
    content = [r for r in state["tt_content"] if r["pid"] == page]
    categories = state["sys_category_record_mm"]
    below = [r for r in state["pages"] if r["pid"] == page and r["sys_language_uid"] == 0] if levels else []
    headers = {r["uid"]: r["header"] for r in content}
    return {
        "media": _files(state, "pages", row),
        "translations": {r["sys_language_uid"]: _files(state, "pages", r) for r in translations},
        "content": [
            (
                r["header"].removesuffix(" (copy 1)"),
                r["CType"],
                r["sys_language_uid"],
                headers.get(r["l18n_parent"]),
                _files(state, "tt_content", r),
                [m["uid_local"] for m in categories if (m["tablenames"], m["uid_foreign"]) == ("tt_content", r["uid"])],
            )
            for r in sorted(content, key=lambda r: (r["sys_language_uid"], r["sorting"]))
        ],
        "below": {
            r["title"]: _shape(state, r["uid"], levels - 1)
            for r in sorted(below, key=lambda r: (r["sorting"], r["uid"]))
        },
    }


def _attached(schema: Schema, state: Mapping[str, list[Mapping[str, Any]]], known: Mapping[str, set[int]]) -> list[Any]:
    """New rows that are children or translations of rows that were there before."""
    found: list[Any] = []
    for name in ("pages", "tt_content", "sys_file_reference"):
        table = schema[name]
        for row in state[name]:
            if row["uid"] in known[name]:
                continue
            if row[table.parent_field or ""] in known[name]:
                found.append((name, row["uid"], "translation", row[table.parent_field or ""]))
            for parent, spec in schema.parents_of.get(name, ()):
                if belongs(spec, parent, row) and row[spec.foreign_field] in known.get(parent, ()):
                    found.append((name, row["uid"], parent, row[spec.foreign_field]))
    return found


async def _copy(connection: Connection, schema: Schema, page: int, levels: int, *, editor: bool = False) -> int:
    """Copies a page below the target; what was there stays as it was, and has no new children or translations."""
    before = await _state(connection)
    user = BackendUser(
        2 if editor else 1,
        admin=not editor,
        uc={"copyLevels": levels},
        tables_modify=frozenset({"pages", "tt_content", "sys_file_reference"}),
    )
    gateway = RecordGateway(connection, schema)
    policy = _Editor(user, schema, OverlayReader(gateway)) if editor else None
    handler = open_handler(connection, schema, user=user, policy=policy)
    made = await handler.process(None, {"pages": {str(page): {"copy": _TARGET}}})
    assert made.outcomes[0].status == "written"
    after = await _state(connection)
    for table, rows in before.items():
        # Copies below the target make room for each other; the source keeps its place.
        moving = {row["uid"] for row in rows if table == "pages" and row["pid"] == _TARGET}
        kept = [row for row in rows if row.get("uid") not in moving]
        assert [row for row in kept if row not in after[table]] == []
    known = {name: {row["uid"] for row in before[name]} for name in ("pages", "tt_content", "sys_file_reference")}
    assert _attached(schema, after, known) == []
    assert (await check(open_handler(connection, schema).ctx)).clean
    copy = made.outcomes[0].uid
    assert copy is not None
    return copy


# --- tests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [0, 2])
@pytest.mark.parametrize("seed", range(2))
async def test_a_page_and_the_copy_of_its_copy_hold_what_the_page_holds(
    tree: Connection, shipped: Schema, seed: int, levels: int
) -> None:
    await _Branch(tree, shipped, seed).fill()
    source = _shape(await _state(tree), _SOURCE, levels)
    first = await _copy(tree, shipped, _SOURCE, levels)
    assert _shape(await _state(tree), first, levels) == source
    second = await _copy(tree, shipped, first, levels)
    assert _shape(await _state(tree), second, levels) == source


@pytest.mark.parametrize("levels", [0, 2])
@pytest.mark.parametrize("seed", range(2))
async def test_what_an_editor_may_not_copy_leaves_nothing_at_the_original(
    tree: Connection, shipped: Schema, seed: int, levels: int
) -> None:
    await _Branch(tree, shipped, seed).fill()
    source = _shape(await _state(tree), _SOURCE, levels)
    copy = await _copy(tree, shipped, _SOURCE, levels, editor=True)

    def expected(shape: _Shape) -> _Shape:
        # Content of the refused type stays behind with its translations and files, and so do the files of pages.
        kept = [entry for entry in shape["content"] if entry[1] != "html"]
        below = {title: expected(inner) for title, inner in shape["below"].items()}
        translations: dict[int, list[Any]] = {language: [[]] for language in shape["translations"]}
        return {"media": [[]], "translations": translations, "content": kept, "below": below}

    assert _shape(await _state(tree), copy, levels) == expected(source)


async def test_a_child_stays_with_its_parent_on_another_page(tree: Connection, shipped: Schema) -> None:
    rows = Rows(tree, shipped)
    await rows.content(900, _TARGET, "elsewhere", image=1)
    await rows.add(
        "sys_file_reference", pid=_SOURCE, uid_local=1, uid_foreign=900, tablenames="tt_content", fieldname="image"
    )
    # Nobody's child is copied with the page.
    await rows.add("sys_file_reference", pid=_SOURCE, uid_local=2, tablenames="tt_content", fieldname="image")
    await rebuild(open_handler(tree, shipped).ctx)
    copy = await _copy(tree, shipped, _SOURCE, 0)
    assert [row["uid_local"] for row in await all_rows(tree, "sys_file_reference", pid=copy)] == [2]
