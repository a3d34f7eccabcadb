"""Merges observations of records into rows of the change list (R-072, R-073, R-079, R-084 to R-086): pure and associative."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from remit_contracts.changes import ChangeAction

RowKey = tuple[str, int]
Order = tuple[int, int]
_C, _U, _M, _D, _R = (
    ChangeAction.CREATED,
    ChangeAction.UPDATED,
    ChangeAction.MOVED,
    ChangeAction.DELETED,
    ChangeAction.RESTORED,
)
_MATRIX: Mapping[ChangeAction, Mapping[ChangeAction, ChangeAction]] = {
    _C: {_C: _C, _U: _C, _M: _C, _D: _D, _R: _C},
    _U: {_C: _C, _U: _U, _M: _M, _D: _D, _R: _R},
    _M: {_C: _C, _U: _U, _M: _M, _D: _D, _R: _R},
    _D: {_C: _C, _U: _D, _M: _D, _D: _D, _R: _R},
    _R: {_C: _C, _U: _R, _M: _R, _D: _D, _R: _R},
}


@dataclass(frozen=True)
class CallMark:
    """A call that touched a record."""

    run: UUID
    call_id: str | None
    tool: str | None
    at: datetime | None


@dataclass(frozen=True)
class StoredFacts:
    """Facts the row itself carries, as the latest observation saw them; ``uid`` is the row that was written."""

    uid: int
    workspace_id: int = 0
    live_uid: int | None = None
    language: int | None = None
    hidden: bool | None = None
    starttime: int | None = None
    endtime: int | None = None
    fe_group: str | None = None


@dataclass(frozen=True)
class MergedRow:
    """One record of the list, merged over calls and runs.

    Attributes:
        key: table and live uid where there is one, else uid (A-05).
        action: none while the record is only known as a named target (legacy).
        created_here: it was created in this conversation and is deleted now; part of the merge state (R-086).
        facts: none for a legacy row.
        order: run and sequence of the last observation.
    """

    key: RowKey
    order: Order
    action: ChangeAction | None = None
    created_here: bool = False
    facts: StoredFacts | None = None
    target: bool = False
    failed: bool = False
    partial: bool = False
    relation: bool = False
    calls: tuple[CallMark, ...] = ()
    runs: tuple[UUID, ...] = ()

    @property
    def legacy(self) -> bool:
        """Known only as the record a tool named."""
        return self.action is None


def merge_actions(
    earlier: tuple[ChangeAction | None, bool], later: tuple[ChangeAction | None, bool]
) -> tuple[ChangeAction | None, bool]:
    """Action and "created here" of two observations in order (R-084, R-086)."""
    (before, before_created), (after, after_created) = earlier, later
    if before is None or after is None:
        return later if before is None else earlier
    if before is _D and before_created and after is _R:
        return _C, False
    action = _MATRIX[before][after]
    created_here = action is _D and (before is _C or before_created or after_created)
    return action, created_here


def merge_rows(earlier: MergedRow, later: MergedRow) -> MergedRow:
    """One row of two observations of the same record, ``later`` being the newer one."""
    action, created_here = merge_actions((earlier.action, earlier.created_here), (later.action, later.created_here))
    return replace(
        later,
        order=max(earlier.order, later.order),
        action=action,
        created_here=created_here,
        facts=later.facts if later.facts is not None else earlier.facts,
        target=earlier.target or later.target,
        failed=earlier.failed or later.failed,
        partial=earlier.partial or later.partial,
        relation=_relation(earlier, later),
        calls=tuple(dict.fromkeys((*earlier.calls, *later.calls))),
        runs=tuple(dict.fromkeys((*earlier.runs, *later.runs))),
    )


def _relation(earlier: MergedRow, later: MergedRow) -> bool:
    """Only relations came or went: holds while every observation says so; a legacy row says nothing."""
    if earlier.legacy or later.legacy:
        return later.relation if earlier.legacy else earlier.relation
    return earlier.relation and later.relation


Rows = Mapping[RowKey, MergedRow]


def merge_lists(earlier: Rows, later: Rows) -> dict[RowKey, MergedRow]:
    """Two partial lists in order; associative, so the lists of finished runs can be merged once (R-085)."""
    merged = dict(earlier)
    for key, row in later.items():
        merged[key] = merge_rows(merged[key], row) if key in merged else row
    return merged


def merge_observations(observations: Iterable[MergedRow]) -> dict[RowKey, MergedRow]:
    """The list of single observations in order of run and sequence."""
    merged: dict[RowKey, MergedRow] = {}
    for row in observations:
        merged[row.key] = merge_rows(merged[row.key], row) if row.key in merged else row
    return merged
