"""The rows one ``apply`` writes, written again by the bare driver, capture included: no implementation can be faster."""

from __future__ import annotations

import itertools
import time
from typing import Any
from uuid import uuid4

import asyncpg

# Rows a one-record update leaves behind, and the columns that must be new in a copy.
APPENDED = ("call_outcome", "sys_history", "outbox")
OF_THE_TRANSACTION = frozenset({"transaction_id", "begun_at"})


class RawRows:
    """Repeats the newest rows of the store's own tables beside an update of a page, in one transaction."""

    def __init__(self, connection: asyncpg.Connection[Any], page: int) -> None:
        self._connection = connection
        self._page = page
        self._copies: list[tuple[str, list[Any], list[int], int | None]] = []
        self._numbers = itertools.count(10_000_000)

    async def prepare(self) -> None:
        """Read the newest row of each table and make an insert of it."""
        for table in APPENDED:
            columns = await self._connection.fetch(
                "SELECT column_name AS name, data_type AS type, is_identity = 'YES' OR column_default LIKE 'nextval%' AS"
                " counted FROM information_schema.columns WHERE table_name = $1 AND is_generated = 'NEVER'"
                " ORDER BY ordinal_position",
                table,
            )
            names = [
                column["name"] for column in columns if not (column["counted"] or column["name"] in OF_THE_TRANSACTION)
            ]
            newest = await self._connection.fetchrow(
                f'SELECT {", ".join(names)} FROM "{table}" ORDER BY xmin::text::bigint DESC LIMIT 1'
            )
            if newest is None:
                raise RuntimeError(f"{table} is empty: apply something first")
            key = await self._unique_columns(table)
            marks = ", ".join(f"${n}" for n in range(1, len(names) + 1))
            fresh = [i for i, name in enumerate(names) if name in key and isinstance(newest[name], type(uuid4()))]
            sequence = next((i for i, name in enumerate(names) if name in key and isinstance(newest[name], int)), None)
            statement = f'INSERT INTO "{table}" ({", ".join(names)}) VALUES ({marks})'
            values = [0 if name == "taken" else value for name, value in newest.items()]
            self._copies.append((statement, values, fresh, sequence))

    async def _unique_columns(self, table: str) -> set[str]:
        rows = await self._connection.fetch(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)"
            " WHERE i.indrelid = $1::regclass AND i.indisunique",
            table,
        )
        return {row["attname"] for row in rows}

    async def write(self, title: str) -> float:
        """One transaction; its duration in seconds."""
        call = uuid4()
        begin = time.perf_counter()
        async with self._connection.transaction():
            await self._connection.execute(
                "INSERT INTO run_fence (run_id, epoch) VALUES ($1, 1) ON CONFLICT (run_id) DO UPDATE SET epoch = 1", RUN
            )
            await self._connection.fetchrow("SELECT * FROM pages WHERE uid = $1 FOR UPDATE", self._page)
            await self._connection.execute("UPDATE pages SET title = $2 WHERE uid = $1", self._page, title)
            for statement, values, fresh, sequence in self._copies:
                row = list(values)
                for index in fresh:
                    row[index] = call
                if sequence is not None:
                    row[sequence] = next(self._numbers)
                await self._connection.execute(statement, *row)
            # The capture cannot be switched off, and the database refuses an outcome whose rows nobody took.
            await self._connection.fetch("SELECT * FROM capture_take($1)", call)
        return time.perf_counter() - begin


RUN = uuid4()
