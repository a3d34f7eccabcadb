"""Takes the captured rows of the running transaction out of the database, in one statement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

import asyncpg

from content_store.capture.errors import capture_error
from content_store.capture.model import CapturedRow, Identity, Operation, Relation

if TYPE_CHECKING:
    from collections.abc import Sequence

TAKE: Final = "SELECT * FROM public.capture_take($1)"


class Connection(Protocol):
    """What is used of a database connection."""

    async def fetch(self, query: str, *args: object) -> Sequence[Mapping[str, Any]]:
        """Run a query, all rows."""


async def take_capture(connection: Connection, call_id: UUID | None) -> list[CapturedRow]:
    """Remove and return what the transaction wrote so far, in the order of its statements (S-53).

    Their number is added to ``taken`` of the transaction's outcome row, whoever takes them.

    Args:
        connection: inside the transaction.
        call_id: the call the transaction belongs to; ``None`` outside a call and in a rehearsal.

    Raises:
        UnknownCallError: the transaction has no outcome row of that call; a COMMIT or ROLLBACK came in between.
    """
    try:
        rows = await connection.fetch(TAKE, call_id)
    except asyncpg.PostgresError as error:
        known = capture_error(error)
        if known is None:
            raise
        raise known from error
    return [captured_row(row) for row in rows]


def captured_row(row: Mapping[str, Any]) -> CapturedRow:
    """One row of ``capture_take`` or ``capture_sweep``."""
    relation = None
    if row["uid_local"] is not None:
        relation = Relation(row["uid_local"], row["uid_foreign"], row["tablenames"] or "", row["fieldname"] or "")
    return CapturedRow(
        table=row["table_name"],
        operation=Operation(row["operation"]),
        uid=row["uid"] or 0,
        before=_identity(row, "before"),
        after=_identity(row, "after"),
        other_changed=row["other_changed"],
        sorting_changed=row["sorting_changed"],
        relation=relation,
        transaction_id=row["transaction_id"],
    )


def _identity(row: Mapping[str, Any], side: str) -> Identity | None:
    # No place: the row was not there on this side. pid is never NULL in a record table.
    if row[f"{side}_pid"] is None:
        return None
    pointers = row[f"{side}_pointers"]
    return Identity(
        pid=row[f"{side}_pid"],
        language=row[f"{side}_language"],
        parent=row[f"{side}_parent"],
        source=row[f"{side}_source"],
        workspace=row[f"{side}_workspace"],
        live_uid=row[f"{side}_live_uid"],
        version_state=row[f"{side}_version_state"],
        deleted=row[f"{side}_deleted"],
        pointers=(json.loads(pointers) if isinstance(pointers, str) else pointers) or {},
    )
