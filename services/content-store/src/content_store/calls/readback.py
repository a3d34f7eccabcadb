"""Reads changed rows back: one query per table, never one per record (C-17)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from content_store.calls.collector import Observation, StoredFacts, last_identity
from content_store.records.gateway import RecordGateway
from content_store.schema.ddl import quote_identifier
from content_store.schema.model import TableSchema
from content_store.scope.child_relations import RecordKey


async def read_facts(gateway: RecordGateway, observations: Iterable[Observation]) -> dict[RecordKey, StoredFacts]:
    """What each row says of itself now; for a row that is gone its last identity.

    A row that is neither there nor known to have been is missing in the answer.
    """
    facts: dict[RecordKey, StoredFacts] = {}
    wanted: dict[str, list[int]] = defaultdict(list)
    for observation in observations:
        if observation.exists:
            wanted[observation.table].append(observation.uid)
        elif (gone := last_identity(observation)) is not None:
            facts[observation.key] = gone
    for table, uids in wanted.items():
        described = gateway.schema.tables.get(table)
        if described is not None:
            sql = f"SELECT {_facts(described)} FROM {gateway.table(table)} WHERE uid = ANY($1::bigint[])"
            for row in await gateway.fetch(sql, uids):
                uid, *values = row.values()
                facts[table, uid] = _stored(values)
    return facts


def _facts(table: TableSchema) -> str:
    enable = table.enable_columns
    columns = (
        "t3ver_wsid",
        "t3ver_oid",
        table.language_field,
        enable.get("disabled"),
        enable.get("starttime"),
        enable.get("endtime"),
        enable.get("fe_group"),
    )
    known = [quote_identifier(c) if c and c in table.db_columns else "NULL" for c in columns]
    return ", ".join(("uid", "pid", *(f"{column} AS fact_{i}" for i, column in enumerate(known))))


def _stored(values: list[object]) -> StoredFacts:
    pid, workspace, live_uid, language, hidden, starttime, endtime, fe_group = values
    return StoredFacts(
        pid=_number(pid) or 0,
        workspace=_number(workspace) or 0,
        live_uid=_number(live_uid) or 0,
        language=_number(language),
        hidden=None if hidden is None else bool(hidden),
        starttime=_number(starttime),
        endtime=_number(endtime),
        fe_group=None if fe_group is None else str(fe_group),
    )


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None
