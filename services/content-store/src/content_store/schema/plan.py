"""Which statements turn a table as it is into the table as described (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from content_store.schema.ddl import qualified_name, quote_identifier
from content_store.schema.live import LiveColumn, LiveTable

_SIZED: Final = re.compile(r"^character varying\((\d+)\)$")


@dataclass
class TablePlan:
    """How one table is brought up to date.

    Attributes:
        table: its name.
        statements: in order; empty when nothing is to be done.
        destructive: one line per statement that may lose data.
    """

    table: str
    statements: list[str] = field(default_factory=list)
    destructive: list[str] = field(default_factory=list)


def plan_table(
    wanted: LiveTable, live: LiveTable | None, create: Sequence[str], schema_name: str = "public"
) -> TablePlan:
    """The plan for a table of the schema files.

    Args:
        wanted: the table as a fresh database would have it.
        live: the table as it is, ``None`` when there is none.
        create: statements that make it anew.
        schema_name: of the database.
    """
    plan = TablePlan(wanted.name)
    if live is None:
        plan.statements += create
        return plan
    target = qualified_name(wanted.name, schema_name)
    for name, definition in live.indexes.items():
        if name.endswith("_idx") and wanted.indexes.get(name) != definition:
            plan.statements.append(f"DROP INDEX {qualified_name(name, schema_name)}")
    for name in live.columns:
        if name not in wanted.columns:
            plan.statements.append(f"ALTER TABLE {target} DROP COLUMN {quote_identifier(name)}")
            plan.destructive.append(f"{wanted.name}.{name}: the column and its values would be dropped")
    for name, column in wanted.columns.items():
        before = live.columns.get(name)
        if before is None:
            plan.statements.append(f"ALTER TABLE {target} ADD COLUMN {_definition(column)}")
        else:
            _change_column(plan, target, before, column)
    for name, definition in wanted.indexes.items():
        if live.indexes.get(name) != definition:
            plan.statements.append(f"CREATE INDEX {quote_identifier(name)} ON {target} {definition}")
    return plan


def plan_drop(live: LiveTable, schema_name: str = "public") -> TablePlan:
    """The plan for a table no file describes any more."""
    return TablePlan(
        live.name,
        [f"DROP TABLE {qualified_name(live.name, schema_name)}"],
        [f"{live.name}: the table and its rows would be dropped"],
    )


def _definition(column: LiveColumn) -> str:
    default = f" DEFAULT {column.default}" if column.default is not None else ""
    return f"{quote_identifier(column.name)} {column.type}{default}{' NOT NULL' if column.required else ''}"


def _change_column(plan: TablePlan, target: str, before: LiveColumn, after: LiveColumn) -> None:
    alter = f"ALTER TABLE {target} ALTER COLUMN {quote_identifier(after.name)}"
    if before.type != after.type:
        if before.default is not None:
            plan.statements.append(f"{alter} DROP DEFAULT")
        plan.statements.append(f"{alter} TYPE {after.type} USING {quote_identifier(after.name)}::{after.type}")
        if after.default is not None:
            plan.statements.append(f"{alter} SET DEFAULT {after.default}")
        if not _widens(before.type, after.type):
            plan.destructive.append(
                f"{plan.table}.{after.name}: {before.type} would become {after.type}, values may be cut or refused"
            )
    elif before.default != after.default:
        plan.statements.append(
            f"{alter} SET DEFAULT {after.default}" if after.default is not None else f"{alter} DROP DEFAULT"
        )
    if before.required and not after.required:
        plan.statements.append(f"{alter} DROP NOT NULL")
    if after.required and not before.required:
        name = quote_identifier(after.name)
        if after.default is not None:
            plan.statements.append(f"UPDATE {target} SET {name} = {after.default} WHERE {name} IS NULL")
        plan.statements.append(f"{alter} SET NOT NULL")
        plan.destructive.append(f"{plan.table}.{after.name}: NULL would become the default")


def _widens(before: str, after: str) -> bool:
    """Every value of the type before is a value of the type after, unchanged."""
    old = _SIZED.match(before)
    if old is None:
        return (before, after) in {
            ("date", "timestamp without time zone"),
            ("bigint", "numeric"),
            ("integer", "bigint"),
        }
    new = _SIZED.match(after)
    return after == "text" or (new is not None and int(new[1]) >= int(old[1]))
