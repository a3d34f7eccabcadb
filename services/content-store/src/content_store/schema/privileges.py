"""What the service's role may do in the database, as GRANT statements (pure).

The service owns nothing. It may not set ``uid``, and of an outcome row neither what it took nor which transaction it
belongs to; it has no right at all on the captured rows (CALLS 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from content_store.schema.ddl import qualified_name, quote_identifier
from content_store.schema.live import LiveTable

_OUTCOME_WRITTEN: Final = ("verdict", "judged", "result")
_OUTCOME_GIVEN: Final = ("call_id", "run_id", "epoch", "request_hash", *_OUTCOME_WRITTEN)
_READ_ONLY: Final = frozenset({"alembic_version", "schema_state", "schema_table"})


def service_grants(
    role: str, database: str, tables: Mapping[str, LiveTable], records: Iterable[str], owner: str
) -> list[str]:
    """Every right of the service's role, and those everybody loses.

    Args:
        role: the service's role.
        database: its name.
        tables: all tables of the database, the store's own and those of records.
        records: names of the record and MM tables.
        owner: the role that runs this.
    """
    service, base = quote_identifier(role), quote_identifier(database)
    statements = [
        f"REVOKE ALL ON DATABASE {base} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {base} TO {service}",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        f"REVOKE CREATE ON SCHEMA public FROM {service}",
        f"GRANT USAGE ON SCHEMA public TO {service}",
        f"REVOKE ALL ON SCHEMA capture FROM PUBLIC, {service}",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA capture FROM PUBLIC, {service}",
        "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public, capture FROM PUBLIC",
        f"ALTER DEFAULT PRIVILEGES FOR ROLE {quote_identifier(owner)} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
        f"GRANT EXECUTE ON FUNCTION public.capture_take(uuid), public.capture_sweep(interval, integer) TO {service}",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {service}",
        f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {service}",
    ]
    record_tables = frozenset(records)
    for name, table in tables.items():
        statements += _table_grants(service, table, name in record_tables)
    return statements


def _table_grants(service: str, table: LiveTable, is_record: bool) -> list[str]:
    target = qualified_name(table.name)
    if table.name in _READ_ONLY:
        return [f"GRANT SELECT ON {target} TO {service}"]
    if table.name == "call_outcome":
        return [
            f"GRANT SELECT, INSERT ({_list(_OUTCOME_GIVEN)}), UPDATE ({_list(_OUTCOME_WRITTEN)}) ON {target} TO {service}"
        ]
    if is_record and "uid" in table.columns:
        columns = _list(name for name in table.columns if name != "uid")
        return [f"GRANT SELECT, INSERT, DELETE, UPDATE ({columns}) ON {target} TO {service}"]
    return [f"GRANT SELECT, INSERT, UPDATE, DELETE ON {target} TO {service}"]


def _list(names: Iterable[str]) -> str:
    return ", ".join(quote_identifier(name) for name in names)
