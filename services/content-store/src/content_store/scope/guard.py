"""What the scope stopped during one call (S-45): a record the loop takes, out of reach of the tool."""

from __future__ import annotations

from remit_contracts.changes import RefusedWrite
from remit_contracts.scope import ScopeReason


class AssignmentScopeGuard:
    """Collects refusals of one call; taken on every way out (S-62)."""

    def __init__(self) -> None:
        self._refused: dict[tuple[RefusedWrite, str], None] = {}

    def refuse(
        self,
        operation: str,
        table: str,
        uid: int | None,
        pid: int | None,
        reason: ScopeReason | str,
        *,
        record: str = "",
    ) -> RefusedWrite:
        """Record one refusal; the same twice counts once.

        Args:
            operation: ``create``, ``update`` or the name of a command.
            table: of the record.
            uid: of the record, None for a new one.
            pid: page it lies or would lie on, where known.
            reason: why.
            record: uid or placeholder as submitted.
        """
        write = RefusedWrite(operation=operation, table=table[:64], uid=uid, pid=pid, reason=str(reason))
        self._refused[write, record] = None
        return write

    @property
    def refused(self) -> tuple[RefusedWrite, ...]:
        """Everything refused so far, in order."""
        return tuple(dict.fromkeys(write for write, _ in self._refused))

    def submitted_since(self, count: int) -> list[tuple[RefusedWrite, str]]:
        """Refusals after the first ``count``, each with the record as submitted."""
        return list(self._refused)[count:]

    def __len__(self) -> int:
        return len(self._refused)
