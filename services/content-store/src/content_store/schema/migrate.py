"""``content-store migrate``: brings the store's own tables and the record tables to this version and these files.

Runs as the owner. The plan is made first: where it would lose data and that was not asked for, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import asyncpg
from service_kit.database import create_engine
from service_kit.migrations import MigrationLockedError, Migrations
from service_kit.pool import plain_url

from content_store.capture.triggers import TRIGGER_NAMES, capture_hash, function_name, schema_capture
from content_store.schema.ddl import (
    child_pointers,
    create_mm_table_statements,
    create_table_statements,
    quote_identifier,
)
from content_store.schema.live import LiveTable, read_live_tables
from content_store.schema.model import Schema, SchemaError
from content_store.schema.plan import TablePlan, plan_drop, plan_table
from content_store.schema.privileges import service_grants
from content_store.schema.state import PACKAGE, database_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    Connection = asyncpg.Connection[Any]

_WAIT_SECONDS: Final = 60
DRAFT_SCHEMA: Final = "remit_migration_draft"
_LOCK: Final = "SELECT pg_advisory_lock(hashtextextended('content-store migrate', 0))"


class DestructiveChangeError(Exception):
    """The files ask for changes that may lose data; nothing was changed. ``changes`` holds one line each."""

    def __init__(self, changes: Sequence[str]) -> None:
        self.changes = list(changes)
        super().__init__("\n".join(self.changes))


class TableChangeError(Exception):
    """The database refused the change of one table; that table is as before, tables before it are changed."""


class TableNameTakenError(Exception):
    """A table of that name is in the database, but it is no record table of ours; nothing was changed."""

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(f"{table}: a table of that name exists and was not made from a table file")


@dataclass(frozen=True)
class MigrationReport:
    """What a migration did.

    Attributes:
        created: tables made.
        changed: tables changed, their capture triggers alone included.
        dropped: tables dropped.
        database_state: stored for the service to compare.
    """

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    database_state: str = ""


async def migrate_database(
    owner_url: str,
    schema: Schema,
    service_role: str | None,
    *,
    allow_destructive: bool = False,
    lock_timeout: float = 2.0,
) -> MigrationReport:
    """Bring a database to this version and this schema. Safe to repeat and to run from several places.

    Args:
        owner_url: of the role that owns the database.
        schema: of the table files.
        service_role: role to grant to; ``None`` grants nothing.
        allow_destructive: drop, narrow and change types where the files say so.
        lock_timeout: seconds a statement waits for a table.

    Raises:
        DestructiveChangeError: changes that may lose data, not asked for.
        TableNameTakenError: a file describes a table that exists and is not ours.
        TableChangeError: values stand in the way of a change; run again after they are put right.
        DatabaseNewerError: the database belongs to a newer version.
        MigrationLockedError: another migration runs or a table is in use; what was done stays, try again.
    """
    connection = await asyncpg.connect(
        plain_url(owner_url), server_settings={"application_name": "content-store-migrate"}
    )
    try:
        await _migrate_own_tables(owner_url, lock_timeout)
        async with _exclusive(connection):
            await connection.execute(f"SET lock_timeout = '{round(lock_timeout * 1000)}ms'")
            report = await _migrate_records(connection, schema, allow_destructive=allow_destructive)
            if service_role is not None:
                await grant_service(connection, schema, service_role)
        return report
    except asyncpg.LockNotAvailableError as error:
        raise MigrationLockedError from error
    finally:
        await connection.close()


async def _migrate_own_tables(owner_url: str, lock_timeout: float) -> None:
    engine = create_engine(owner_url, application_name="content-store-migrate")
    try:
        await Migrations(PACKAGE, lock_timeout=lock_timeout).upgrade(engine)
    finally:
        await engine.dispose()


async def grant_service(connection: Connection, schema: Schema, service_role: str) -> None:
    """Give the service's role exactly its rights, in one transaction."""
    database, owner = await connection.fetchrow("SELECT current_database(), current_user") or ("", "")
    tables = await read_live_tables(connection)
    records = {table.name for table in schema} | set(schema.mm_tables)
    async with connection.transaction():
        await connection.execute(";\n".join(service_grants(service_role, database, tables, records, owner)))


@asynccontextmanager
async def _exclusive(connection: Connection) -> AsyncIterator[None]:
    # Held by the session, so it also ends with the connection. Another migration is waited for longer than a table.
    await connection.execute(f"SET lock_timeout = '{_WAIT_SECONDS}s'")
    await connection.execute(_LOCK)
    try:
        yield
    finally:
        await connection.execute("SELECT pg_advisory_unlock_all()")


async def _migrate_records(connection: Connection, schema: Schema, *, allow_destructive: bool) -> MigrationReport:
    create = _create_statements(schema, "public")
    wanted = await _wanted_tables(connection, schema)
    live = await read_live_tables(connection)
    known = {
        row["table_name"]: row["capture_hash"] for row in await connection.fetch("SELECT * FROM public.schema_table")
    }
    for name in create:
        if name in live and name not in known:
            raise TableNameTakenError(name)
    plans = [plan_table(wanted[name], live.get(name), create[name]) for name in create]
    drops = [plan_drop(live[name]) for name in known if name not in create and name in live]
    lossy = [line for plan in (*plans, *drops) for line in plan.destructive]
    if lossy and not allow_destructive:
        raise DestructiveChangeError(lossy)
    capture = schema_capture(schema)
    changed = [
        plan for plan in plans if plan.statements or not _is_captured(live.get(plan.table), capture[plan.table], known)
    ]
    for plan in changed:
        with _naming(plan.table):
            await _apply(connection, plan, capture[plan.table])
    for plan in drops:
        with _naming(plan.table):
            await _drop(connection, plan)
    digest = database_state(schema)
    await connection.execute(
        "INSERT INTO public.schema_state (schema_hash) VALUES ($1) "
        "ON CONFLICT (only_row) DO UPDATE SET schema_hash = excluded.schema_hash, migrated_at = clock_timestamp()",
        digest,
    )
    return MigrationReport(
        tuple(plan.table for plan in changed if plan.table not in live),
        tuple(plan.table for plan in changed if plan.table in live),
        tuple(plan.table for plan in drops),
        digest,
    )


@contextmanager
def _naming(table: str) -> Iterator[None]:
    try:
        yield
    except asyncpg.LockNotAvailableError:
        raise
    except asyncpg.PostgresError as error:
        raise TableChangeError(f"{table}: {error}") from error


def _is_captured(live: LiveTable | None, capture: Sequence[str], known: Mapping[str, str]) -> bool:
    if live is None or not live.always_triggers.issuperset(TRIGGER_NAMES):
        return False
    return known.get(live.name) == capture_hash(capture)


async def _apply(connection: Connection, plan: TablePlan, capture: Sequence[str]) -> None:
    async with connection.transaction():
        for statement in (*plan.statements, *capture):
            await connection.execute(statement)
        await connection.execute(
            "INSERT INTO public.schema_table (table_name, capture_hash) VALUES ($1, $2) "
            "ON CONFLICT (table_name) DO UPDATE "
            "SET capture_hash = excluded.capture_hash, migrated_at = clock_timestamp()",
            plan.table,
            capture_hash(capture),
        )
        # Values filled in for the files' sake are no change of a record anybody asks about.
        await connection.execute("SELECT public.capture_take(NULL)")


async def _drop(connection: Connection, plan: TablePlan) -> None:
    async with connection.transaction():
        for statement in plan.statements:
            await connection.execute(statement)
        for kind in ("insert", "update", "delete"):
            await connection.execute(f"DROP FUNCTION IF EXISTS {function_name(plan.table, kind)}()")
        await connection.execute("DELETE FROM public.schema_table WHERE table_name = $1", plan.table)


def _create_statements(schema: Schema, schema_name: str) -> dict[str, list[str]]:
    pointers = child_pointers(schema)
    records = {
        table.name: create_table_statements(table, schema_name, pointers.get(table.name, ())) for table in schema
    }
    relations = {name: create_mm_table_statements(table, schema_name) for name, table in schema.mm_tables.items()}
    if both := sorted(records.keys() & relations.keys()):
        # One would take the place of the other, with its columns.
        raise SchemaError(f"{', '.join(both)}: named as a relation table (MM), but is a table of records")
    return records | relations


async def _wanted_tables(connection: Connection, schema: Schema) -> dict[str, LiveTable]:
    """The tables as the server would make them: built beside the real ones and undone at once.

    Compared with the real ones, types and defaults need no parsing: both are written by the server itself.
    """
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(f"CREATE SCHEMA {quote_identifier(DRAFT_SCHEMA)}")
        for statements in _create_statements(schema, DRAFT_SCHEMA).values():
            await connection.execute(";\n".join(statements))
        return await read_live_tables(connection, DRAFT_SCHEMA)
    finally:
        await transaction.rollback()
