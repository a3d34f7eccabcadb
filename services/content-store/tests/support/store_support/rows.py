"""For tests, of extensions too: tables of a schema and rows put into them without a DataHandler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import asyncpg
from content_store.records.casting import cast_for_column
from content_store.schema.ddl import create_schema_statements, qualified_name, quote_identifier
from content_store.schema.model import Schema

if TYPE_CHECKING:
    Connection = asyncpg.Connection[Any]
else:
    # At run time the class takes no parameter.
    Connection = asyncpg.Connection
#: Show, edit page, delete page, new pages, edit content.
ALL_BITS = 31


async def create_tables(connection: Connection, schema: Schema) -> None:
    """All tables of the schema, without capture triggers and roles."""
    for statement in create_schema_statements(schema):
        await connection.execute(statement)


class Rows:
    """Puts rows into tables, as given; columns that are not named get their default.

    Args:
        connection: as a role that may write everything.
        schema: tables there are.
    """

    def __init__(self, connection: Connection, schema: Schema) -> None:
        self._connection = connection
        self._schema = schema

    async def add(self, table: str, **values: Any) -> int:
        """A row; the answer is its uid."""
        columns = self._schema.tables[table].db_columns
        cast = {name: cast_for_column(table, columns[name], value) for name, value in values.items()}
        names = ", ".join(quote_identifier(name) for name in cast)
        marks = ", ".join(f"${i}" for i in range(1, len(cast) + 1))
        uid: int = await self._connection.fetchval(
            f"INSERT INTO {qualified_name(table)} ({names}) VALUES ({marks}) RETURNING uid", *cast.values()
        )
        return uid

    async def page(self, uid: int, pid: int = 0, title: str = "", everybody: int = 0, **values: Any) -> int:
        """A page that gives everybody these bits."""
        return await self.add(
            "pages", uid=uid, pid=pid, title=title or f"Page {uid}", perms_everybody=everybody, doktype=1, **values
        )

    async def content(self, uid: int, pid: int, header: str = "", **values: Any) -> int:
        """A content element."""
        return await self.add("tt_content", uid=uid, pid=pid, header=header or f"Content {uid}", **values)

    async def user(self, uid: int, username: str, groups: str = "", **values: Any) -> int:
        """A user who may work live."""
        defaults: Mapping[str, Any] = {"workspace_perms": 1, "options": 3, "disable": 0}
        return await self.add("be_users", uid=uid, username=username, usergroup=groups, **{**defaults, **values})


_OWN_STATE = ("alembic_version", "schema_state", "schema_table")


async def empty_tables(connection: Connection) -> None:
    """Removes every row but what a migration left, capture included; as an administrator of the server."""
    tables = await connection.fetch(
        "SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind = 'r' AND n.nspname IN ('public', 'capture') AND c.relname <> ALL($1::text[]) "
        # The capture table last: deleting from the others fills it.
        "ORDER BY n.nspname = 'capture', c.relname LIKE 'auth_session'",
        list(_OWN_STATE),
    )
    await connection.execute("; ".join(f"DELETE FROM {row['name']}" for row in tables))
