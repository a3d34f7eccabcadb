"""Which schema a database was migrated to."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Protocol

import asyncpg
from service_kit.migrations import Migrations

from content_store.schema.loader import schema_hash
from content_store.schema.model import Schema

PACKAGE: Final = "content_store"


class SchemaDiffersError(Exception):
    """The database was migrated to another schema than the one loaded; the message says what to do."""


class _Connection(Protocol):
    async def fetchval(self, query: str, *args: object) -> Any: ...


def database_state(schema: Schema) -> str:
    """What a migrated database holds: the newest revision of the store's own tables and the hash of the schema."""
    return f"{_head()}:{schema_hash(schema)}"


@cache
def _head() -> str:
    return Migrations(PACKAGE).head() or ""


async def check_schema(connection: _Connection, schema: Schema) -> None:
    """Readiness: the stored state is the one of this version and the loaded schema; nothing else is looked at.

    Raises:
        SchemaDiffersError: it is not, or the database was never migrated.
    """
    try:
        stored = await connection.fetchval("SELECT schema_hash FROM public.schema_state")
    except asyncpg.UndefinedTableError as error:
        raise SchemaDiffersError("the database was never migrated, run: content-store migrate") from error
    if stored != database_state(schema):
        raise SchemaDiffersError("version or table files differ from the database, run: content-store migrate")
