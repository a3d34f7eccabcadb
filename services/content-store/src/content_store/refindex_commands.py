"""``content-store refindex check|rebuild``: is the reference index what the records say, and make it so (SEMANTICS 18)."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, Final

import asyncpg
import typer
from service_kit.pool import plain_url
from service_kit.settings import load_settings_or_exit

from content_store.access.rights import SYSTEM_USER, AdministratorPolicy
from content_store.datahandler.handler import DataHandler, HandlerActor
from content_store.datahandler.refindex import Drift, check, write_drift
from content_store.records.gateway import RecordGateway
from content_store.schema.files import SchemaFileError
from content_store.schema.loader import load_schema
from content_store.schema.model import Schema
from content_store.settings import DatabaseSettings

refindex_app = typer.Typer(no_args_is_help=True, help="The reference index: which record points to which.")
#: Exit codes: the index differs; it could not be looked at.
DRIFT: Final = 1
FAILED: Final = 2
_Limit = Annotated[int, typer.Option(min=0, help="Lines to show of each kind.")]


@dataclass(frozen=True)
class DriftReport:
    """What differs, by record and field.

    Attributes:
        missing: ``table:uid.field -> target`` of rows the index should have.
        surplus: the same of rows it should not have.
    """

    missing: tuple[str, ...]
    surplus: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Is there no difference?"""
        return not self.missing and not self.surplus

    def lines(self, limit: int) -> list[str]:
        """For people, at most so many of each kind."""
        found: list[str] = []
        for word, rows in (("missing", self.missing), ("surplus", self.surplus)):
            counted = Counter(rows)
            found += [f"{word}: {row}{f' ({n} times)' if n > 1 else ''}" for row, n in list(counted.items())[:limit]]
            if len(counted) > limit:
                found.append(f"{word}: and {len(counted) - limit} more")
        return found


async def compare_index(connection: asyncpg.Connection[Any], schema: Schema, *, repair: bool) -> DriftReport:
    """Compares the whole index with the records, and corrects it where asked.

    While it works nobody else writes the index: a run that changed records waits with its own rows, which it computes
    from what it changed, and writes them afterwards.
    """
    async with connection.transaction():
        gateway = RecordGateway(connection, schema)
        await gateway.fetch(f"LOCK TABLE {gateway.table('sys_refindex')} IN SHARE ROW EXCLUSIVE MODE")
        policy = AdministratorPolicy(schema, gateway)
        handler = DataHandler(gateway, HandlerActor(SYSTEM_USER), policy=policy)
        drift = await check(handler.ctx)
        report = DriftReport(tuple(map(_shown, drift.missing)), await _surplus(gateway, drift))
        if repair:
            await write_drift(gateway, drift)
    return report


async def _surplus(gateway: RecordGateway, drift: Drift) -> tuple[str, ...]:
    if not drift.surplus:
        return ()
    rows = await gateway.fetch(
        f"SELECT tablename, recuid, field, ref_table, ref_uid, ref_string FROM {gateway.table('sys_refindex')} "
        "WHERE hash = ANY($1::text[]) ORDER BY tablename, recuid, field",
        drift.surplus,
    )
    return tuple(_shown(row) for row in rows)


def _shown(row: Any) -> str:
    target = f"{row['ref_table']}:{row['ref_uid']}" if row["ref_uid"] else row["ref_string"]
    return f"{row['tablename']}:{row['recuid']}.{row['field']} -> {target}"


@refindex_app.command("check")
def check_command(show: _Limit = 20) -> None:
    """Report what differs. Ends with 0 where nothing does, 1 where something does, 2 where it could not be looked at."""
    report = _run(repair=False)
    _print(report, show)
    if not report.clean:
        raise typer.Exit(DRIFT)


@refindex_app.command("rebuild")
def rebuild_command(show: _Limit = 20) -> None:
    """Correct the index and report what was wrong. Ends with 0, or 2 where it could not be done."""
    report = _run(repair=True)
    _print(report, show)
    if not report.clean:
        typer.echo("The index was corrected.")


def _print(report: DriftReport, show: int) -> None:
    for line in report.lines(show):
        typer.echo(line)
    summary = "is clean" if report.clean else f"differs: {len(report.missing)} missing, {len(report.surplus)} surplus"
    typer.echo(f"The reference index {summary}.")


def _run(*, repair: bool) -> DriftReport:
    settings = load_settings_or_exit(DatabaseSettings)
    try:
        return asyncio.run(_connected(settings, repair=repair))
    except SchemaFileError as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(FAILED) from error
    except (OSError, asyncpg.PostgresError) as error:
        reason = str(error) if isinstance(error, asyncpg.PostgresError) else type(error).__name__
        sys.stderr.write(f"the database cannot be used: {reason}\n")
        raise typer.Exit(FAILED) from error


async def _connected(settings: DatabaseSettings, *, repair: bool) -> DriftReport:
    schema = load_schema(settings.schema_folders)
    connection = await asyncpg.connect(
        plain_url(settings.database_url.get_secret_value()),
        server_settings={"application_name": "content-store-refindex"},
    )
    try:
        return await compare_index(connection, schema, repair=repair)
    finally:
        await connection.close()
