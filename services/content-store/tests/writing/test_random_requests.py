"""Random requests of an administrator and of an editor against the application on PostgreSQL (issue 4, S-42).

After every request: no server error; what was not written left every row as it was; the order on each page has no
doubles; an editor changed nothing the rights forbid. At the end of a run: the reference index is what the rows say.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Coroutine
from typing import Any, ClassVar, Final

import asyncpg
import pytest
from content_store.datahandler.sites import Site
from content_store.refindex_commands import compare_index
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from store_support.app import StoreUnderTest
from store_support.oracle import EditorRights, Oracle, Rows, doubled_places
from store_support.requests import cmdmaps, datamaps
from store_support.rows import ALL_BITS, Connection

EDITOR, ADMIN, SHOW = 1, 2, 1
RIGHTS: Final = EditorRights(
    uid=EDITOR,
    group=1,
    mount=11,
    tables=frozenset({"pages", "tt_content", "sys_file_reference"}),
    languages=frozenset({0, 1}),
    fields=frozenset({"pages:hidden", "pages:nav_title", "tt_content:layout"}),
    content_types=frozenset({"text"}),
    root_tables=frozenset({"sys_file_reference"}),
)
SITE: Final = Site.from_data(
    {
        "identifier": "town",
        "rootPageId": 10,
        "languages": [{"languageId": n, "title": t} for n, t in enumerate(["English", "Deutsch", "Dansk"])],
    }
)
_EVERYTHING: Final = ("sys_history", "sys_refindex")


class Bench:
    """The site of one test: its rows can be read and put back."""

    def __init__(self, store: StoreUnderTest, schema: Schema, loop: asyncio.AbstractEventLoop) -> None:
        self.store, self.schema, self._loop = store, schema, loop
        tables = {t.name: t.ctrl for t in schema}
        self._tables = [t for t in tables if t not in ("be_users",)]
        self._mm = list(schema.mm_tables)
        self._start: dict[str, str] = {}
        self.headers: dict[int, dict[str, str]] = {}
        self.oracle = Oracle(
            RIGHTS,
            {t.name: {c.name: _default(t, c.name) for c in t.columns.values() if c.exclude and c.name in t.db_columns
                      and c.name not in (t.language_field, t.parent_field, t.source_field)} for t in schema},
            {t.name: frozenset(c.name for c in t.columns.values() if c.l10n_mode == "exclude") for t in schema},
            {t.name: frozenset(t.enable_columns.values()) for t in schema},
        )  # fmt: skip

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """From the thread of the machine: the application lives in the loop of the test."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def remember(self) -> None:
        for table in (*self._tables, *self._mm):
            rows = await self.store.owner.fetchval(f'SELECT jsonb_agg(to_jsonb(t)) FROM "{table}" t')
            if rows is not None:
                self._start[table] = rows
        for uid in (EDITOR, ADMIN):
            self.headers[uid] = await self.store.token(uid)

    async def reset(self) -> None:
        """The rows of the start, and the next uids as they were."""
        owner = self.store.owner
        names = [*self._tables, *self._mm, *_EVERYTHING, "sys_log", "outbox"]
        async with owner.transaction():
            await owner.execute("; ".join(f'DELETE FROM "{name}"' for name in names))
            for table, rows in self._start.items():
                await owner.execute(
                    f'INSERT INTO "{table}" SELECT * FROM jsonb_populate_recordset(NULL::"{table}", $1)', rows
                )
            for table, start in (("pages", 21), ("tt_content", 105), ("sys_file_reference", 302)):
                await owner.execute(f'ALTER TABLE "{table}" ALTER COLUMN uid RESTART WITH {start}')
            await owner.execute("SELECT count(*) FROM capture_take(NULL)")
            await compare_index(owner, self.schema, repair=True)

    async def rows(self) -> Rows:
        parts = [f"""SELECT '{t}' AS t, uid, to_jsonb(x)::text AS data FROM "{t}" x""" for t in self._tables]
        found = await self.store.owner.fetch(" UNION ALL ".join(parts))
        return {(row["t"], row["uid"]): json.loads(row["data"]) for row in found}

    async def others(self) -> list[str]:
        """Relation rows, history and index."""
        parts = [f'SELECT to_jsonb(x)::text AS data FROM "{t}" x' for t in (*self._mm, *_EVERYTHING)]
        return sorted(row["data"] for row in await self.store.owner.fetch(" UNION ALL ".join(parts)))

    async def post(self, user: int, kind: str, maps: Any) -> tuple[int, dict[str, Any]]:
        response = await self.store.client.post(f"/v1/{kind}", json={kind: maps}, headers=self.headers[user])
        return response.status_code, response.json()

    async def drift(self) -> list[str]:
        return (await compare_index(self.store.owner, self.schema, repair=False)).lines(10)


def _default(table: Any, name: str) -> Any:
    column = table.db_columns[name]
    described = table.columns[name].config.get("default")
    if described is not None:
        return int(described) if column.type == "int" else str(described)
    return column.default if column.default is not None or column.nullable else {"int": 0}.get(column.type, "")


class Requests(RuleBasedStateMachine):
    """Sends requests and looks at what they did."""

    bench: ClassVar[Bench]

    @initialize()
    def start(self) -> None:
        self.bench.wait(self.bench.reset())
        # Restored records take a place that somebody else may have by now.
        self.restored = False

    @rule(maps=datamaps(editor=False))
    def administrator_writes(self, maps: Any) -> None:
        self._send(ADMIN, "datamap", maps)

    @rule(maps=cmdmaps(editor=False))
    def administrator_commands(self, maps: Any) -> None:
        self._send(ADMIN, "cmdmap", maps)

    @rule(maps=datamaps(editor=True))
    def editor_writes(self, maps: Any) -> None:
        self._send(EDITOR, "datamap", maps)

    @rule(maps=cmdmaps(editor=True))
    def editor_commands(self, maps: Any) -> None:
        self._send(EDITOR, "cmdmap", maps)

    @rule(maps=cmdmaps(editor=True), more=st.data())
    def editor_repeats(self, maps: Any, more: st.DataObject) -> None:
        for _ in range(more.draw(st.integers(1, 2))):
            self._send(EDITOR, "cmdmap", maps)

    def _send(self, user: int, kind: str, maps: Any) -> None:
        before, others = self.bench.wait(self.bench.rows()), self.bench.wait(self.bench.others())
        status, answer = self.bench.wait(self.bench.post(user, kind, maps))
        assert status == 200, (status, answer)
        after = self.bench.wait(self.bench.rows())
        entries = answer.get("entries", [])
        if not any(entry["status"] == "written" for entry in entries):
            assert after == before, (answer, _difference(before, after))
            assert self.bench.wait(self.bench.others()) == others, answer
        for entry in entries:
            assert entry["status"] in ("written", "unchanged") or entry["code"], entry
        self.restored |= kind == "cmdmap" and "undelete" in json.dumps(maps)
        if not self.restored:
            assert doubled_places(after) == []
        if user == EDITOR:
            assert self.bench.oracle.violations(before, after) == [], answer

    def teardown(self) -> None:
        assert self.bench.wait(self.bench.drift()) == []


def _difference(before: Rows, after: Rows) -> list[Any]:
    return [
        (key, before.get(key), after.get(key))
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    ]


async def build_site(store: StoreUnderTest) -> None:
    """A town whose editor works below page 11, in two languages of three, with text only."""
    rows = store.rows
    await rows.page(10, 0, "Town", everybody=ALL_BITS, slug="/", is_siteroot=1)
    await rows.page(11, 10, "News", everybody=ALL_BITS, sorting=256, slug="/news")
    await rows.page(12, 10, "Council", everybody=ALL_BITS, sorting=512, slug="/council")
    await rows.page(13, 11, "Archive", everybody=ALL_BITS, sorting=256, slug="/news/archive")
    await rows.page(14, 11, "Looked at only", everybody=SHOW, sorting=512, slug="/news/look")
    await rows.page(15, 11, "Locked", everybody=ALL_BITS, sorting=768, editlock=1, slug="/news/locked")
    translation = {"l10n_parent": 11, "l10n_source": 11, "sorting": 256}
    await rows.page(20, 10, "Nachrichten", everybody=ALL_BITS, sys_language_uid=1, **translation)
    await rows.content(100, 11, "First", CType="text", sorting=1, image=1)
    await rows.content(101, 11, "Second", CType="text", sorting=2)
    await rows.content(102, 12, "Elsewhere", CType="text", sorting=256, image=1)
    await rows.content(103, 11, "Kept", CType="text", sorting=3, editlock=1)
    await rows.content(104, 14, "Not here", CType="text", sorting=256, subheader="kept", layout="1")
    await rows.add("sys_category", uid=400, pid=10, title="Category")
    await rows.add("sys_file", uid=500, pid=0, identifier="/a.png", name="a.png", storage=1)
    for uid, page, content in ((300, 11, 100), (301, 12, 102)):
        await rows.add("sys_file_reference", uid=uid, pid=page, uid_local=500, uid_foreign=content,
                       tablenames="tt_content", fieldname="image", sorting_foreign=1)  # fmt: skip
    await rows.add(
        "be_groups",
        uid=1,
        title="editors",
        tables_select=",".join(RIGHTS.tables),
        tables_modify=",".join(RIGHTS.tables),
        db_mountpoints=str(RIGHTS.mount),
        allowed_languages=",".join(map(str, RIGHTS.languages)),
        explicit_allowdeny=",".join(f"tt_content:CType:{kind}" for kind in RIGHTS.content_types),
        pagetypes_select="1",
        non_exclude_fields=",".join(RIGHTS.fields),
    )
    await rows.user(EDITOR, "ed", "1", password="x", db_mountpoints=str(RIGHTS.mount))
    await rows.user(ADMIN, "root", admin=1)


@pytest.fixture
async def town(
    store_database: tuple[str, DatabaseUrls], schema: Schema, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    async with StoreUnderTest(store_database[1], schema, tmp_path_factory.mktemp("keys"), sites=(SITE,)).run() as store:
        await build_site(store)
        bench = Bench(store, schema, asyncio.get_running_loop())
        await bench.remember()
        yield bench
        admin: Connection = await asyncpg.connect(store_database[0])
        await _empty(admin)
        await admin.close()


async def _empty(admin: Connection) -> None:
    from store_support.rows import empty_tables

    await empty_tables(admin)


async def play(bench: Bench, examples: int, steps: int) -> None:
    chosen = random.SystemRandom().randrange(2**32)
    print(f"seed of the random requests: {chosen}")  # noqa: T201 - shown where it fails
    machine = type("Requests", (Requests,), {"bench": bench})
    found = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None, print_blob=False,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    await asyncio.to_thread(run_state_machine_as_test, seeded(chosen)(machine), settings=found)


@pytest.mark.req("S-42")
async def test_random_requests(town: Bench) -> None:
    await play(town, examples=8, steps=8)


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_many_random_requests(town: Bench) -> None:
    await play(town, examples=300, steps=20)
