"""Plays the cases of a conformance suite against the DataHandler, on PostgreSQL.

Each group has a schema of its own in the test database, filled once; each case runs in a transaction that is rolled
back, with the sequences set to where the rows end.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import asyncpg
from content_store.access.policy import BackendUser
from content_store.datahandler.files_hook import FileRecordsHook
from content_store.datahandler.handler import DataHandler, HandlerActor
from content_store.datahandler.refindex import check, rebuild
from content_store.datahandler.sites import Site, Sites
from content_store.datahandler.tsconfig import parse_tsconfig
from content_store.records.gateway import RecordGateway
from content_store.schema.ddl import create_schema_statements, qualified_name, quote_identifier
from content_store.schema.model import UNSET, Schema

from store_support.comparison import compare_table, compare_value
from store_support.suite import References, SuiteCase, SuiteGroup

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


def group_schema_name(group: SuiteGroup) -> str:
    """Name of the group's schema in the test database."""
    return "suite_" + group.name.replace(".", "_").lower()


async def build_group(connection: Connection, group: SuiteGroup) -> None:
    """Makes the tables of a group and fills them, unless they are there."""
    name = group_schema_name(group)
    if await connection.fetchval("SELECT 1 FROM pg_namespace WHERE nspname = $1", name):
        return
    schema = Schema.from_data(group.schema)
    async with connection.transaction():
        await connection.execute(f"CREATE SCHEMA {quote_identifier(name)}")
        await connection.execute(";".join(create_schema_statements(schema, name)))
        for table, block in group.initial.items():
            await _load(connection, schema, name, table, block)


async def _load(connection: Connection, schema: Schema, name: str, table: str, block: Mapping[str, Any]) -> None:
    known = schema.tables.get(table)
    defaults = dict(known.import_defaults) if known is not None else {}
    gateway = RecordGateway(connection, schema, name)
    for cells in block["rows"]:
        row = {**defaults, **dict(zip(block["columns"], cells, strict=True))}
        if table in ("sys_refindex",):
            listed = ", ".join(quote_identifier(c) for c in row)
            marks = ", ".join(f"${i}" for i in range(1, len(row) + 1))
            await connection.execute(
                f"INSERT INTO {qualified_name(table, name)} ({listed}) VALUES ({marks})", *row.values()
            )
        elif known is not None:
            stored = {c: v for c, v in row.items() if v is not None or known.db_columns[c].nullable}
            await gateway.insert(table, stored)
        else:
            await gateway.insert_rows(table, [row])


async def reset_sequences(connection: Connection, schema: Schema, name: str) -> None:
    """The next uid of every table is its highest one plus one; sequences do not roll back."""
    calls = [
        f"setval(pg_get_serial_sequence('{qualified_name(t, name)}', 'uid'), "
        f"(SELECT coalesce(max(uid), 0) + 1 FROM {qualified_name(t, name)}), false)"
        for t in [*schema.tables, "sys_history", "sys_log"]
    ]
    await connection.fetch("SELECT " + ", ".join(calls))


class CaseRun:
    """One case at work, inside a transaction."""

    def __init__(self, connection: Connection, group: SuiteGroup, case: SuiteCase) -> None:
        self.connection = connection
        self.case = case.data
        self.name = group_schema_name(group)
        self.schema = Schema.from_data(group.schema)
        self.sites = Sites(Site.from_data(site) for site in self.case.get("sites") or [])
        self.references = References(self.case, self.rows)
        self.settings: dict[str, Any] = {}
        self.errors = 0

    async def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table, in the order of uid."""
        found = await self.connection.fetch(f"SELECT * FROM {qualified_name(table, self.name)}")
        rows = [dict(row) for row in found]
        return sorted(rows, key=lambda row: row["uid"]) if rows and "uid" in rows[0] else rows

    async def play(self) -> list[str]:
        """Plays all steps and returns the differences."""
        for change in self.case.get("tca_changes") or []:
            self._change_schema(change)
        if self.case.get("site_root_page"):
            await self._update("pages", {"is_siteroot": 1}, {"uid": self.case["site_root_page"]})
        for number, step in enumerate(self.case["steps"]):
            await self._step(number, step)
        messages: list[str] = []
        for table, block in (self.case.get("expected") or {}).items():
            messages += compare_table(table, block["columns"], block["rows"], list(await self.rows(table)))
        for value in self.case.get("value_checks") or []:
            messages += compare_value(value, await self.rows(value["table"]))
        wanted = self.case.get("expected_error_log_entries", 0)
        logged = [row for row in await self.rows("sys_log") if row["error"] in (1, 2)]
        if len(logged) != wanted:
            messages.append(f"sys_log: {len(logged)} errors instead of {wanted}: {[r['details'] for r in logged]}")
        if self.case.get("reference_index_must_be_clean"):
            drift = await check((await self._handler(0, self.case["user"])).ctx)
            if not drift.clean:
                messages.append(f"sys_refindex: missing {drift.missing}, surplus {drift.surplus}")
        return messages

    def _change_schema(self, change: Mapping[str, Any]) -> None:
        self.schema = self.schema.with_change(change["path"], UNSET if change.get("unset") else change["set"])

    async def _handler(self, workspace: int, user: int) -> DataHandler:
        row = next(r for r in await self.rows("be_users") if r["uid"] == user)
        actor = BackendUser(
            user, row["username"], bool(row["admin"]), uc=self.settings, tsconfig=parse_tsconfig(row.get("TSconfig"))
        )
        gateway = RecordGateway(self.connection, self.schema, self.name)
        return DataHandler(gateway, HandlerActor(actor, workspace), [FileRecordsHook()], sites=self.sites)

    async def _step(self, number: int, step: Mapping[str, Any]) -> None:
        workspace, user = step.get("workspace", self.case["workspace"]), step.get("user", self.case["user"])
        operation = step["op"]
        if operation == "set_tca":
            for change in step["changes"]:
                self._change_schema(change)
        elif operation == "set_user_uc":
            self.settings[step["key"]] = step["value"]
        elif operation == "db_update":
            await self._update(step["table"], step["set"], step["where"])
        elif operation == "rebuild_reference_index":
            await rebuild((await self._handler(0, user)).ctx)
        elif operation == "hard_delete":
            handler = await self._handler(workspace, user)
            await handler.hard_delete(step["table"], await self.references.fill(step["uid"], workspace))
        elif operation == "data_handler":
            self.references.results[number] = await self._data_handler(step, workspace, user)
        else:
            raise NotImplementedError(f"step {operation}")

    async def _data_handler(self, step: Mapping[str, Any], workspace: int, user: int) -> Any:
        datamap = await self.references.fill(step.get("datamap") or {}, workspace)
        cmdmap = await self.references.fill(step.get("cmdmap") or {}, workspace)
        for rows in datamap.values():
            for key, row in rows.items():
                if "$row_of" in row:
                    rows[key] = await self._row_of(row)
        handler = await self._handler(workspace, user)
        suggested = [
            (table, int(uid)) for table, uids in (step.get("suggested_insert_uids") or {}).items() for uid in uids
        ]
        return await handler.process(datamap, cmdmap, suggested_uids=suggested)

    async def _row_of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        wanted = row["$row_of"]
        stored = next(r for r in await self.rows(wanted["table"]) if all(r[n] == v for n, v in wanted["where"].items()))
        values = {name: value for name, value in stored.items() if name not in wanted["without"]}
        for name in wanted["decode_json"]:
            values[name] = json.loads(values[name]) if values.get(name) else values.get(name)
        return {**values, **row["$set"]}

    async def _update(self, table: str, values: Mapping[str, Any], where: Mapping[str, Any]) -> None:
        names, conditions = list(values), list(where)
        sets = ", ".join(f"{quote_identifier(n)} = ${i}" for i, n in enumerate(names, 1))
        tests = " AND ".join(f"{quote_identifier(n)} = ${i}" for i, n in enumerate(conditions, len(names) + 1))
        sql = f"UPDATE {qualified_name(table, self.name)} SET {sets}" + (f" WHERE {tests}" if tests else "")
        await self.connection.execute(sql, *values.values(), *where.values())


@asynccontextmanager
async def case_run(connection: Connection, group: SuiteGroup, case: SuiteCase) -> AsyncIterator[CaseRun]:
    """A case in a transaction that is rolled back."""
    await build_group(connection, group)
    transaction = connection.transaction()
    await transaction.start()
    try:
        run = CaseRun(connection, group, case)
        await reset_sequences(connection, run.schema, run.name)
        yield run
    finally:
        await transaction.rollback()
