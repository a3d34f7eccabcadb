"""The only place with SQL on record and relation tables (DESIGN 6, CALLS 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import asyncpg

from content_store.records.casting import cast_for_column, from_database
from content_store.records.errors import (
    CALL_ENDING_SQLSTATES,
    FORGOTTEN_STATEMENT,
    CallMustEnd,
    StatementRefused,
    TransactionLost,
    ValueNotStorable,
)
from content_store.records.lost import LOST
from content_store.schema.ddl import qualified_name, quote_identifier
from content_store.schema.model import DbColumn, Schema

if TYPE_CHECKING:
    # The stubs' connection is generic over the record class; the gateway does not care which.
    Connection = asyncpg.Connection[Any] | asyncpg.pool.PoolConnectionProxy[Any]

Row = dict[str, Any]
#: How the statements begin that change no row. Whoever writes through a function or a recursive WITH is not counted.
_READING = ("SELECT", "SAVEPOINT", "RELEASE", "ROLLBACK", "WITH RECURSIVE")


class RecordGateway:
    """Statements on record and relation tables, on one connection in one transaction.

    Args:
        connection: inside a transaction; its statement cache keeps the prepared statements.
        schema: tables and columns that may be named.
        schema_name: schema of the database the tables lie in; every name is qualified with it.

    Attributes:
        statements: how many were sent, savepoints included.
        writes: how many of them could change rows.
    """

    def __init__(self, connection: Connection, schema: Schema, schema_name: str = "public") -> None:
        self.connection = connection
        self.schema = schema
        self.schema_name = schema_name
        self.statements = 0
        self.writes = 0
        self._select_lists: dict[str, str] = {}

    def table(self, name: str) -> str:
        """Qualified, quoted name."""
        return qualified_name(name, self.schema_name)

    async def fetch(self, sql: str, *args: Any) -> list[asyncpg.Record]:
        """Sends one statement.

        Raises:
            TransactionLost: the connection is not in a transaction any more.
            CallMustEnd: deadlock, serialization failure, lock timeout, cancelled.
            StatementRefused: any other refusal of the database.
            One of LOST: the connection is gone, and with it everything that was not committed.
        """
        if not self.connection.is_in_transaction():
            raise TransactionLost("the transaction of the call is gone")
        self.statements += 1
        if not sql.startswith(_READING):
            self.writes += 1
        try:
            return await self.connection.fetch(sql, *args)
        except LOST:
            raise
        except asyncpg.PostgresError as error:
            sqlstate = str(getattr(error, "sqlstate", "") or "")
            if sqlstate == FORGOTTEN_STATEMENT:
                # Somebody deallocated what the driver had prepared: of no use to anybody any more.
                self.connection.terminate()
                raise CallMustEnd(sqlstate, "the connection lost its prepared statements") from error
            if sqlstate in CALL_ENDING_SQLSTATES:
                raise CallMustEnd(sqlstate, str(error)) from error
            raise StatementRefused(sqlstate, str(error)) from error

    def columns_of(self, table: str) -> Mapping[str, DbColumn]:
        """Columns of a record or relation table."""
        if table in self.schema.tables:
            return self.schema.tables[table].db_columns
        return self.schema.mm_tables[table].db_columns

    def _select_list(self, table: str) -> str:
        if table not in self._select_lists:
            self._select_lists[table] = ", ".join(quote_identifier(c) for c in self.columns_of(table))
        return self._select_lists[table]

    def cast(self, table: str, column: str, value: Any) -> Any:
        """The value for the driver.

        Raises:
            ValueNotStorable: it does not fit, or there is no such column.
        """
        known = self.columns_of(table).get(column)
        if known is None:
            raise ValueNotStorable(table, column, "column")
        return cast_for_column(table, known, value)

    async def select(
        self,
        table: str,
        where: Mapping[str, Any],
        *,
        order_by: Sequence[str] = ("uid",),
        limit: int | None = None,
        extra: str = "",
    ) -> list[Row]:
        """Rows that fit all conditions.

        Args:
            table: record or relation table.
            where: column -> value; a list, tuple or set means any of its values.
            order_by: columns, a leading ``-`` for descending.
            limit: at most so many.
            extra: a further condition without parameters, written by the caller.
        """
        conditions, args = self._conditions(table, where)
        if extra:
            conditions.append(extra)
        sql = f"SELECT {self._select_list(table)} FROM {self.table(table)}"
        if conditions:
            sql += f" WHERE {' AND '.join(conditions)}"
        if order_by:
            sql += " ORDER BY " + ", ".join(
                f"{quote_identifier(c.removeprefix('-'))}{' DESC' if c.startswith('-') else ''}" for c in order_by
            )
        if limit is not None:
            sql += f" LIMIT {int(limit)}"
        return [_row(record) for record in await self.fetch(sql, *args)]

    def _conditions(self, table: str, where: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
        conditions: list[str] = []
        args: list[Any] = []
        for column, value in where.items():
            name = quote_identifier(column)
            if isinstance(value, list | tuple | set | frozenset):
                args.append([self.cast(table, column, v) for v in value])
                conditions.append(f"{name} = ANY(${len(args)})")
            else:
                args.append(self.cast(table, column, value))
                conditions.append(f"{name} = ${len(args)}")
        return conditions, args

    async def select_by_uids(self, table: str, uids: Iterable[int]) -> dict[int, Row]:
        """Rows by uid, in one statement; missing uids are missing in the answer."""
        wanted = sorted(set(uids))
        if not wanted:
            return {}
        return {row["uid"]: row for row in await self.select(table, {"uid": wanted}, order_by=())}

    async def insert(self, table: str, values: Mapping[str, Any]) -> Row:
        """Inserts one row and returns it as stored, uid included."""
        names = sorted(values)
        args = [self.cast(table, name, values[name]) for name in names]
        columns = ", ".join(quote_identifier(name) for name in names)
        marks = ", ".join(f"${i}" for i in range(1, len(names) + 1))
        body = f"({columns}) VALUES ({marks})" if names else "DEFAULT VALUES"
        sql = f"INSERT INTO {self.table(table)} {body} RETURNING {self._select_list(table)}"
        return _row((await self.fetch(sql, *args))[0])

    async def update(self, table: str, uid: int, values: Mapping[str, Any]) -> None:
        """Changes columns of one row."""
        names = sorted(values)
        args = [self.cast(table, name, values[name]) for name in names]
        sets = ", ".join(f"{quote_identifier(name)} = ${i}" for i, name in enumerate(names, 2))
        await self.fetch(f"UPDATE {self.table(table)} SET {sets} WHERE uid = $1", uid, *args)

    async def update_each(self, table: str, column: str, by_uid: Mapping[int, Any], same: Mapping[str, Any]) -> None:
        """Gives each row its own value in one column and all of them the same in others, in one statement."""
        names = sorted(same)
        args = [self.cast(table, name, same[name]) for name in names]
        sets = [f"{quote_identifier(name)} = ${i}" for i, name in enumerate(names, 3)]
        own = [self.cast(table, column, value) for value in by_uid.values()]
        sets.append(f"{quote_identifier(column)} = v.own")
        kind = "bigint" if self.columns_of(table)[column].type == "int" else "text"
        await self.fetch(
            f"UPDATE {self.table(table)} SET {', '.join(sets)} "
            f"FROM unnest($1::bigint[], $2::{kind}[]) AS v(id, own) WHERE uid = v.id",
            list(by_uid),
            own,
            *args,
        )

    async def update_many(self, table: str, uids: Sequence[int], values: Mapping[str, Any]) -> None:
        """Gives the rows the same values, in one statement."""
        names = sorted(values)
        args = [self.cast(table, name, values[name]) for name in names]
        sets = ", ".join(f"{quote_identifier(name)} = ${i}" for i, name in enumerate(names, 2))
        await self.fetch(f"UPDATE {self.table(table)} SET {sets} WHERE uid = ANY($1::bigint[])", list(uids), *args)

    async def delete(self, table: str, uids: Sequence[int]) -> None:
        """Removes rows for good."""
        await self.fetch(f"DELETE FROM {self.table(table)} WHERE uid = ANY($1::bigint[])", list(uids))

    async def insert_rows(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Inserts rows with the same keys in one statement; nothing is returned (relation rows)."""
        if not rows:
            return
        names = sorted(rows[0])
        args = [[self.cast(table, name, row[name]) for row in rows] for name in names]
        columns = self.columns_of(table)
        arrays = ", ".join(
            f"${i}::{'bigint' if columns[name].type == 'int' else 'text'}[]" for i, name in enumerate(names, 1)
        )
        listed = ", ".join(quote_identifier(name) for name in names)
        await self.fetch(f"INSERT INTO {self.table(table)} ({listed}) SELECT * FROM unnest({arrays})", *args)

    async def shift_sorting(
        self, table: str, page: int, above: int | None, by: int, *, delete_field: str | None, live_only: bool
    ) -> dict[int, int]:
        """Adds ``by`` to the sort column of a page's rows, above a number or all of them.

        Returns:
            New sort number by uid.
        """
        sort = quote_identifier(self.schema.tables[table].sort_field or "")
        conditions, args = ["pid = $1"], [page, by]
        if above is not None:
            args.append(above)
            conditions.append(f"{sort} > $3")
        if delete_field:
            conditions.append(f"{quote_identifier(delete_field)} = 0")
        if live_only:
            conditions.append("t3ver_oid = 0")
        rows = await self.fetch(
            f"UPDATE {self.table(table)} SET {sort} = {sort} + $2 WHERE {' AND '.join(conditions)} "
            f"RETURNING uid, {sort} AS number",
            *args,
        )
        return {row["uid"]: row["number"] for row in rows}

    async def delete_mm(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Removes relation rows that are equal in both uids and, where there are such columns, table and field."""
        await self._by_mm_key(f"DELETE FROM {self.table(table)} AS t USING", "", table, rows)

    async def update_mm(self, table: str, sort_column: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes the sort number of one side of relation rows."""
        sort = quote_identifier(sort_column)
        await self._by_mm_key(f"UPDATE {self.table(table)} AS t SET {sort} = v.{sort} FROM", sort_column, table, rows)

    async def _by_mm_key(self, start: str, sort_column: str, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if not rows:
            return
        columns = self.columns_of(table)
        keys = [c for c in ("uid_local", "uid_foreign", "tablenames", "fieldname") if c in columns]
        names = [*keys, sort_column] if sort_column else keys
        arrays = ", ".join(
            f"${i}::{'bigint' if columns[n].type == 'int' else 'text'}[]" for i, n in enumerate(names, 1)
        )
        listed = ", ".join(quote_identifier(n) for n in names)
        match = " AND ".join(f"t.{quote_identifier(k)} = v.{quote_identifier(k)}" for k in keys)
        args = [[self.cast(table, n, row[n]) for row in rows] for n in names]
        await self.fetch(f"{start} unnest({arrays}) AS v({listed}) WHERE {match}", *args)

    async def savepoint(self, action: str, name: str) -> None:
        """``SAVEPOINT``, ``RELEASE SAVEPOINT`` or ``ROLLBACK TO SAVEPOINT``."""
        await self.fetch(f"{action} {quote_identifier(name)}")


def _row(record: asyncpg.Record) -> Row:
    return {key: from_database(value) for key, value in record.items()}
