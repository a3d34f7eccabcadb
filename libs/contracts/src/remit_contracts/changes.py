"""The change list of a call: identities and stored facts, never a title or a value (C-05 to C-14)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self, TypeVar

from pydantic import ValidationError

from remit_contracts.base import StoredContract

MAX_CHANGES = 50

Stored = TypeVar("Stored", bound=StoredContract)


class ChangeAction(StrEnum):
    """What happened to a record. Created and then updated is created."""

    CREATED = "created"
    UPDATED = "updated"
    MOVED = "moved"
    DELETED = "deleted"
    RESTORED = "restored"


class Coverage(StrEnum):
    """How much the list can claim; never complete (C-09)."""

    DATAHANDLER = "datahandler"
    NOT_CAPTURED = "not_captured"


class Witness(StrEnum):
    """Who reported (C-10)."""

    HOOKS = "hooks"
    HISTORY = "history"
    DATABASE = "database"


class RecordChange(StoredContract):
    """One changed record.

    Attributes:
        workspace_id: the workspace the row is stored in.
        live_uid: the live row this is a version of; none for a live or new row.
        language: of the row; none for a table without language.
        write_target: the record the tool named.
        hidden: the disable flag; none for a table without one.
        starttime: Unix seconds, 0 or none = not restricted.
        endtime: as ``starttime``.
        fe_group: group restriction the row carries.
        relation: only an MM row of the record came or went.
    """

    table: str
    uid: int
    action: ChangeAction
    workspace_id: int = 0
    live_uid: int | None = None
    language: int | None = None
    write_target: bool = False
    hidden: bool | None = None
    starttime: int | None = None
    endtime: int | None = None
    fe_group: str | None = None
    relation: bool = False


class RefusedWrite(StoredContract):
    """A write the scope stopped (S-71).

    Attributes:
        operation: ``create``, ``update``, ``move``, ``delete``, … or ``effect`` for a violation found after the call.
        uid: of the record, none for a new one.
        pid: page it lies or would lie on, where known.
        reason: a ``ScopeReason`` or a later code.
        undone: the whole call was rolled back because of it (S-75).
    """

    operation: str
    table: str
    uid: int | None = None
    pid: int | None = None
    reason: str
    undone: bool = False


class ObservedChangeSet(StoredContract):
    """Payload of a ``tool_changes`` step."""

    changes: tuple[RecordChange, ...] = ()
    changes_omitted: int = 0
    coverage: Coverage = Coverage.DATAHANDLER
    witnesses: tuple[str, ...] = ()
    refused: tuple[RefusedWrite, ...] = ()

    @property
    def worth_a_step(self) -> bool:
        """Something changed, was refused or could not be captured (C-01, C-20, S-71)."""
        return bool(self.changes or self.changes_omitted or self.refused or self.coverage is Coverage.NOT_CAPTURED)

    @classmethod
    def try_from_event_payload(cls, payload: Any) -> Self | None:
        """Read a payload of any age: skips entries it cannot read, never raises (C-14, S-72).

        Returns:
            None where the payload is no change list at all.
        """
        if not isinstance(payload, Mapping) or not (
            "changes" in payload or "refused" in payload or "coverage" in payload
        ):
            return None
        changes = _readable(RecordChange, payload.get("changes"))
        refused = _readable(RefusedWrite, payload.get("refused"))
        omitted = payload.get("changesOmitted", 0)
        coverage = payload.get("coverage")
        witnesses = payload.get("witnesses")
        return cls(
            changes=tuple(changes),
            changes_omitted=omitted
            if isinstance(omitted, int) and not isinstance(omitted, bool) and omitted > 0
            else 0,
            coverage=Coverage.DATAHANDLER if coverage == Coverage.DATAHANDLER.value else Coverage.NOT_CAPTURED,
            witnesses=tuple(str(name) for name in witnesses) if isinstance(witnesses, list | tuple) else (),
            refused=tuple(refused),
        )


def _readable(model: type[Stored], items: Any) -> list[Stored]:
    read: list[Stored] = []
    for item in items if isinstance(items, list | tuple) else ():
        try:
            read.append(model.model_validate(item))
        except ValidationError:
            continue
    return read
