"""A small store for tests: a migrated database with two trees of pages, and its calls wired up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import asyncpg
from content_store.calls.endpoints import Calls
from content_store.calls.environment import CallLimits, StoreEnvironment
from content_store.calls.interactive import OpenCalls
from content_store.calls.rehearsal import RehearsalService
from content_store.calls.service import CallService
from content_store.datahandler.hooks import DataHandlerHook
from content_store.datahandler.sites import Site, Sites
from content_store.schema.ddl import qualified_name
from content_store.schema.loader import load_schema
from content_store.schema.model import Schema
from remit_contracts.actor import ActorContext
from remit_contracts.calls import ApplyRequest, Cmdmap, Datamap, Operation
from remit_contracts.scope import EffectiveAssignmentScope
from service_kit.ids import uuid7
from service_kit.pool import create_pool
from service_kit.statements import StatementCounter

from store_support.database import prepare_test_database

ADMIN = 1
_KEPT_BY_CALLS = ("sys_history", "sys_log", "sys_refindex", "call_outcome", "run_fence", "outbox", "outbox_stream")
#: Pages 1 > 10 > 100 > 1000 and 2 > 20, German translations of 10 and 100; content 5 and its translation 8 on 10,
#: 6 on 100, 7 on 20, 9 on 10; a file reference on 5 and one on 7; a redirect.
SEED = """
INSERT INTO pages (uid, pid, title, slug, sorting, perms_everybody, sys_language_uid, l10n_parent, l10n_source, hidden)
VALUES (1, 0, 'Town', '/', 256, 31, 0, 0, 0, 0), (10, 1, 'Hall', '/hall', 256, 31, 0, 0, 0, 0),
  (100, 10, 'Office', '/hall/office', 256, 31, 0, 0, 0, 0), (1000, 100, 'Desk', '/hall/office/desk', 256, 31, 0, 0, 0, 0),
  (11, 1, 'Pool', '/pool', 512, 31, 0, 0, 0, 0), (2, 0, 'Other', '/', 512, 31, 0, 0, 0, 0),
  (20, 2, 'Elsewhere', '/elsewhere', 256, 31, 0, 0, 0, 0),
  (30, 1, 'Rathaus', '/rathaus', 256, 31, 1, 10, 10, 0), (31, 10, 'Amt', '/rathaus/amt', 256, 31, 1, 100, 100, 0);
INSERT INTO tt_content (uid, pid, header, sorting, sys_language_uid, l18n_parent, l10n_source, "CType")
VALUES (5, 10, 'Welcome', 256, 0, 0, 0, 'text'), (9, 10, 'Hours', 512, 0, 0, 0, 'text'),
  (8, 10, 'Willkommen', 768, 1, 5, 5, 'text'), (6, 100, 'Office', 256, 0, 0, 0, 'text'),
  (7, 20, 'Foreign', 256, 0, 0, 0, 'text');
INSERT INTO sys_file (uid, pid, name, identifier, storage) VALUES (3, 0, 'a.png', '/a.png', 1), (4, 0, 'b.png', '/b.png', 1);
INSERT INTO sys_file_metadata (uid, pid, file, title) VALUES (3, 0, 3, 'A'), (4, 0, 4, 'B');
INSERT INTO sys_file_reference (uid, pid, uid_local, uid_foreign, tablenames, fieldname, sorting_foreign)
VALUES (50, 10, 3, 5, 'tt_content', 'image', 1), (70, 20, 4, 7, 'tt_content', 'image', 1);
UPDATE tt_content SET image = 1 WHERE uid IN (5, 7);
INSERT INTO sys_category (uid, pid, title, sorting) VALUES (1, 20, 'Category', 256);
INSERT INTO sys_redirect (uid, pid, source_host, source_path, target) VALUES (1, 0, '*', '/old', '/new');
INSERT INTO be_users (uid, pid, username, admin) VALUES (1, 0, 'admin', 1);
SELECT setval(pg_get_serial_sequence(name, 'uid'), 5000) FROM unnest(ARRAY['pages', 'tt_content', 'sys_file',
  'sys_file_metadata', 'sys_file_reference', 'sys_category', 'sys_redirect', 'be_users']) AS name;
SELECT count(*) FROM capture_take();
"""


def test_sites() -> Sites:
    """Both trees, with German as second language."""
    languages = [{"languageId": 0, "title": "English"}, {"languageId": 1, "title": "Deutsch", "fallbacks": [0]}]
    return Sites(
        [Site.from_data({"identifier": f"site-{root}", "rootPageId": root, "languages": languages}) for root in (1, 2)]
    )


async def reset(owner_url: str, schema: Schema, seed: str = SEED) -> None:
    """Put a test store back to its seed: quicker than a new database, and nothing of a test is left."""
    connection = await asyncpg.connect(owner_url)
    tables = [*schema.tables, *schema.mm_tables, *_KEPT_BY_CALLS]
    try:
        async with connection.transaction():
            await connection.execute("".join(f"DELETE FROM {qualified_name(table)};" for table in tables))
            await _load(connection, seed)
    finally:
        await connection.close()


async def _load(connection: Any, seed: str) -> None:
    for statement in filter(str.strip, seed.split(";\n")):
        await connection.execute(statement)


async def build_template(admin_url: str, schema: Schema | None = None, seed: str = SEED) -> None:
    """Make an empty database the test store; leaves no connection behind."""
    urls = await prepare_test_database(admin_url, schema or load_schema())
    connection = await asyncpg.connect(urls.owner)
    try:
        async with connection.transaction():
            await _load(connection, seed)
    finally:
        await connection.close()


@dataclass
class TestStore:
    """The calls of one store process.

    Attributes:
        env: what its calls share; replace it with :meth:`with_env`.
        service_url: of the role the service runs as.
        owner_url: of the owner.
        counter: statements of the apply pool.
        clock: seconds the open calls go by; set it to let limits pass.
    """

    __test__ = False

    env: StoreEnvironment
    service_url: str
    owner_url: str
    applies: Any
    opens: Any
    counter: StatementCounter
    now: list[float] = field(default_factory=lambda: [0.0])

    @property
    def service(self) -> CallService:
        """Calls in one request."""
        return CallService(self.env, self.applies, self.opens)

    def open_calls(self) -> OpenCalls:
        """Open calls of a process of its own."""
        return OpenCalls(
            self.env, self.opens, self.service, address="http://store", key=b"k" * 32, clock=lambda: self.now[0]
        )

    @property
    def rehearsals(self) -> RehearsalService:
        """Rehearsals."""
        return RehearsalService(self.env, self.opens)

    @property
    def calls(self) -> Calls:
        """Everything the routes use."""
        return Calls(self.service, self.open_calls(), self.rehearsals, self.env, self.opens)

    def with_env(self, **changes: Any) -> TestStore:
        """The same store with other hooks, limits or controls."""
        return replace(self, env=replace(self.env, **changes))

    def with_hooks(self, *hooks: DataHandlerHook) -> TestStore:
        """The same store with these hooks installed."""
        return self.with_env(hooks=lambda: hooks)

    async def rows(self, sql: str, *args: Any) -> list[asyncpg.Record]:
        """What the database holds, read as the owner on a connection of its own."""
        connection = await asyncpg.connect(self.owner_url)
        try:
            return list(await connection.fetch(sql, *args))
        finally:
            await connection.close()

    async def value(self, sql: str, *args: Any) -> Any:
        """First column of the first row, None for no row."""
        rows = await self.rows(sql, *args)
        return rows[0][0] if rows else None

    async def close(self) -> None:
        """Close the pools."""
        await self.applies.close()
        await self.opens.close()


async def open_test_store(
    admin_url: str,
    *,
    server_url: str,
    limits: CallLimits | None = None,
    schema: Schema | None = None,
    prepare: Callable[[str], Awaitable[None]] | None = None,
) -> TestStore:
    """A store on a copy of the template.

    Args:
        admin_url: of the copy.
        server_url: of the server, another database.
        limits: of calls.
        schema: as the template was made with.
        prepare: changes the copy first, given the owner's URL.
    """
    urls = await prepare_test_database(admin_url, server_url=server_url)
    if prepare is not None:
        await prepare(urls.owner)
    known = limits or CallLimits(lock_timeout=0.5, rehearsal_lock_timeout=0.3, max_open=4)
    counter = StatementCounter()
    applies, opens = [
        await create_pool(
            urls.service,
            application_name="test-store",
            min_size=1,
            max_size=6,
            lock_timeout=known.lock_timeout,
            counter=one,
        )
        for one in (counter, None)
    ]
    env = StoreEnvironment(schema=schema or load_schema(), sites=test_sites(), limits=known)
    return TestStore(env, urls.service, urls.owner, applies, opens, counter)


def apply_request(
    *operations: Operation,
    run_id: UUID | None = None,
    epoch: int = 1,
    scope: EffectiveAssignmentScope | None = None,
    user: int = ADMIN,
    **values: Any,
) -> ApplyRequest:
    """A call of the administrator with these operations."""
    return ApplyRequest(
        run_id=run_id or uuid7(),
        lease_epoch=epoch,
        actor=ActorContext(user_uid=user),
        tool=values.pop("tool", "test_tool"),
        scope=scope,
        operations=list(operations),
        **values,
    )


def update(table: str, uid: int, **fields: Any) -> Datamap:
    """One update."""
    return Datamap(datamap={table: {str(uid): fields}})


def command(table: str, uid: int, name: str, value: Any = 1) -> Cmdmap:
    """One command."""
    return Cmdmap(cmdmap={table: {str(uid): {name: value}}})
