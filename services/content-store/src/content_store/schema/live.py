"""What tables look like in the database: columns, indexes, capture triggers. One query each for any number of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg

_COLUMNS = """
SELECT c.relname AS table_name, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
       a.attnotnull AS required, a.attidentity <> '' AS identity, pg_get_expr(d.adbin, d.adrelid) AS default_sql
  FROM pg_class AS c
  JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = $1
  JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relkind IN ('r', 'p')
 ORDER BY c.relname, a.attnum
"""
# The definition is compared without the schema's and the index's name.
_INDEXES = """
SELECT t.relname AS table_name, i.relname AS name,
       regexp_replace(pg_get_indexdef(x.indexrelid), '^.* USING ', 'USING ') AS definition
  FROM pg_index AS x
  JOIN pg_class AS t ON t.oid = x.indrelid
  JOIN pg_namespace AS n ON n.oid = t.relnamespace AND n.nspname = $1
  JOIN pg_class AS i ON i.oid = x.indexrelid
 WHERE NOT x.indisprimary
 ORDER BY t.relname, i.relname
"""
_TRIGGERS = """
SELECT t.relname AS table_name, g.tgname AS name
  FROM pg_trigger AS g
  JOIN pg_class AS t ON t.oid = g.tgrelid
  JOIN pg_namespace AS n ON n.oid = t.relnamespace AND n.nspname = $1
 WHERE g.tgenabled = 'A' AND NOT g.tgisinternal
"""


@dataclass(frozen=True)
class LiveColumn:
    """A column as the server describes it.

    Attributes:
        type: as ``format_type`` writes it.
        required: NOT NULL.
        default: SQL of the default, ``None`` for none.
        identity: numbered by the server.
    """

    name: str
    type: str
    required: bool
    default: str | None
    identity: bool = False


@dataclass(frozen=True)
class LiveTable:
    """A table as it is.

    Attributes:
        indexes: name -> definition, the primary key left out.
        always_triggers: names of the triggers that fire whatever the session's replication role is.
    """

    name: str
    columns: Mapping[str, LiveColumn]
    indexes: Mapping[str, str] = field(default_factory=dict)
    always_triggers: frozenset[str] = frozenset()


async def read_live_tables(connection: asyncpg.Connection[Any], schema_name: str = "public") -> dict[str, LiveTable]:
    """All tables of a database schema, by name."""
    columns: dict[str, dict[str, LiveColumn]] = {}
    for row in await connection.fetch(_COLUMNS, schema_name):
        columns.setdefault(row["table_name"], {})[row["name"]] = LiveColumn(
            row["name"], row["type"], row["required"], row["default_sql"], row["identity"]
        )
    indexes = _by_table(await connection.fetch(_INDEXES, schema_name), "definition")
    triggers = _by_table(await connection.fetch(_TRIGGERS, schema_name), "name")
    return {
        name: LiveTable(name, found, indexes.get(name, {}), frozenset(triggers.get(name, ())))
        for name, found in columns.items()
    }


def _by_table(rows: Sequence[Mapping[str, Any]], value: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        found.setdefault(row["table_name"], {})[row["name"]] = row[value]
    return found
