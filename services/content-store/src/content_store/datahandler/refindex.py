"""The reference index (SEMANTICS 18): which record points to which, kept up to date at the end of a run.

:class:`ReferenceCollector` remembers what changed, :func:`update_references` compares the stored rows of these records
with what their fields say and writes the difference. :func:`check` does so for everything and reports the drift.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import xxhash

from content_store.datahandler.refindex_rows import relevant_columns, rows_for_records
from content_store.records.gateway import RecordGateway, Row

if TYPE_CHECKING:
    from content_store.datahandler.run import RunContext

COLUMNS: Final = (
    "tablename",
    "recuid",
    "field",
    "hidden",
    "starttime",
    "endtime",
    "t3ver_state",
    "flexpointer",
    "softref_key",
    "softref_id",
    "sorting",
    "workspace",
    "ref_table",
    "ref_uid",
    "ref_field",
    "ref_hidden",
    "ref_starttime",
    "ref_endtime",
    "ref_t3ver_state",
    "ref_sorting",
    "ref_string",
)
_SQL_TYPES: Final = {
    "hidden": "smallint",
    "ref_hidden": "smallint",
    "t3ver_state": "smallint",
    "ref_t3ver_state": "smallint",
}
_TEXTS: Final = frozenset(
    {"tablename", "field", "flexpointer", "softref_key", "softref_id", "ref_table", "ref_field", "ref_string"}
)
_CHUNK: Final = 500


def reference_hash(row: Row) -> str:
    """Identity of an index row: XXH3-128 with seed 1 over all other values."""
    return xxhash.xxh3_128_hexdigest(",".join(str(row[name]) for name in COLUMNS).encode(), seed=1)


@dataclass(frozen=True)
class Drift:
    """Difference between the index and the records.

    Attributes:
        missing: rows the index should have.
        surplus: hashes of rows it should not have.
    """

    missing: list[Row]
    surplus: list[str]

    @property
    def clean(self) -> bool:
        """Is there no difference?"""
        return not self.missing and not self.surplus


class ReferenceCollector:
    """Records of a run whose index rows may have changed."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, int], None] = {}
        # Records whose own state (hidden, deleted ...) changed: who points to them has to be looked at, too.
        self.targets: dict[tuple[str, int], None] = {}
        self._relevant: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    def register(self, table: str, uid: int, *, as_target: bool = False) -> None:
        """The record's references (and, ``as_target``, the ones to it) may have changed."""
        self.records[table, uid] = None
        if as_target:
            self.targets[table, uid] = None

    def register_change(self, ctx: RunContext, table: str, uid: int, columns: Iterable[str]) -> None:
        """Columns of the record changed; nothing is registered when the index does not depend on them."""
        if table not in self._relevant:
            self._relevant[table] = relevant_columns(ctx.table(table))
        own, target = self._relevant[table]
        changed = set(columns)
        if changed & target:
            self.register(table, uid, as_target=True)
        elif changed & own:
            self.register(table, uid)

    def snapshot(self) -> tuple[dict[tuple[str, int], None], dict[tuple[str, int], None]]:
        """For :meth:`restore`."""
        return dict(self.records), dict(self.targets)

    def restore(self, snapshot: tuple[dict[tuple[str, int], None], dict[tuple[str, int], None]]) -> None:
        """Back to a snapshot."""
        self.records, self.targets = dict(snapshot[0]), dict(snapshot[1])


async def update_references(ctx: RunContext) -> None:
    """Brings the index up to date for what was collected."""
    collector = ctx.references
    records, targets = collector.records, collector.targets
    collector.records, collector.targets = {}, {}
    if not records:
        return
    records = dict(records)
    if targets:
        for row in await ctx.gateway.fetch(
            f"SELECT DISTINCT r.tablename, r.recuid FROM {ctx.gateway.table('sys_refindex')} r "
            "JOIN unnest($1::text[], $2::bigint[]) AS t(name, id) ON r.ref_table = t.name AND r.ref_uid = t.id",
            [table for table, _ in targets],
            [uid for _, uid in targets],
        ):
            if row["tablename"] in ctx.schema:
                records[row["tablename"], row["recuid"]] = None
    drift = await _compare(ctx, list(records))
    await write_drift(ctx.gateway, drift)


async def _compare(ctx: RunContext, records: list[tuple[str, int]]) -> Drift:
    wanted = {reference_hash(row): row for row in await rows_for_records(ctx, records)}
    stored = {
        row["hash"]
        for row in await ctx.gateway.fetch(
            f"SELECT r.hash FROM {ctx.gateway.table('sys_refindex')} r "
            "JOIN unnest($1::text[], $2::bigint[]) AS t(name, id) ON r.tablename = t.name AND r.recuid = t.id",
            [table for table, _ in records],
            [uid for _, uid in records],
        )
    }
    return Drift([row for key, row in wanted.items() if key not in stored], sorted(stored - wanted.keys()))


async def write_drift(gateway: RecordGateway, drift: Drift) -> None:
    """Removes surplus rows, then inserts missing ones."""
    name = gateway.table("sys_refindex")
    if drift.surplus:
        await gateway.fetch(f"DELETE FROM {name} WHERE hash = ANY($1::text[])", drift.surplus)
    if drift.missing:
        arrays = ", ".join(f"${i}::{_array_type(column)}[]" for i, column in enumerate(COLUMNS, 2))
        columns: list[list[Any]] = [[row[column] for row in drift.missing] for column in COLUMNS]
        await gateway.fetch(
            f"INSERT INTO {name} (hash, {', '.join(COLUMNS)}) SELECT * FROM unnest($1::text[], {arrays}) "
            "ON CONFLICT (hash) DO NOTHING",
            [reference_hash(row) for row in drift.missing],
            *columns,
        )


def _array_type(column: str) -> str:
    return "text" if column in _TEXTS else _SQL_TYPES.get(column, "bigint")


async def check(ctx: RunContext) -> Drift:
    """Compares the whole index with the records; writes nothing."""
    wanted: dict[str, Row] = {}
    for table in ctx.schema:
        uids = [r["uid"] for r in await ctx.gateway.fetch(f"SELECT uid FROM {ctx.gateway.table(table.name)}")]
        for start in range(0, len(uids), _CHUNK):
            chunk = [(table.name, uid) for uid in uids[start : start + _CHUNK]]
            wanted.update({reference_hash(row): row for row in await rows_for_records(ctx, chunk)})
            if len(uids) > _CHUNK:
                # What was read is not needed again, and there may be much of it.
                ctx.reader.forget()
                ctx.mm.forget()
    stored = {r["hash"] for r in await ctx.gateway.fetch(f"SELECT hash FROM {ctx.gateway.table('sys_refindex')}")}
    return Drift([row for key, row in wanted.items() if key not in stored], sorted(stored - wanted.keys()))


async def rebuild(ctx: RunContext) -> Drift:
    """Corrects the whole index and returns what was wrong."""
    drift = await check(ctx)
    await write_drift(ctx.gateway, drift)
    return drift
