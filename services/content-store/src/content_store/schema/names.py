"""Names of tables that are taken (pure)."""

from __future__ import annotations

from typing import Final

#: Tables of the store itself; neither a table file nor a relation may take their names.
RESERVED_TABLES: Final = frozenset(
    {
        "alembic_version", "auth_login_attempt", "auth_refresh_token", "auth_session", "call_outcome",
        "idempotency_key", "outbox", "outbox_stream", "run_fence", "schema_state", "schema_table", "sys_history",
        "sys_log", "sys_refindex",
    }
)  # fmt: skip


def is_reserved(name: str) -> bool:
    """Does the store, or the database server, have a table of that name?"""
    return name in RESERVED_TABLES or name.startswith("pg_")
