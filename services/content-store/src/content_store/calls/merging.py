"""Several actions on one record become one (R-084), and several witnesses agree on it: pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

from remit_contracts.changes import ChangeAction

from content_store.capture.model import RowDelta

_STICKS: Final = {
    ChangeAction.CREATED: {ChangeAction.UPDATED, ChangeAction.MOVED, ChangeAction.RESTORED},
    ChangeAction.RESTORED: {ChangeAction.UPDATED, ChangeAction.MOVED},
    ChangeAction.DELETED: {ChangeAction.UPDATED, ChangeAction.MOVED},
}


class VersionState:
    """Values of ``t3ver_state`` that say what a version does to its live record."""

    DELETED: Final = 2
    MOVED: Final = 4


def merge_actions(earlier: ChangeAction, later: ChangeAction) -> ChangeAction:
    """The action shown for a record that was first ``earlier``, then ``later`` (the matrix of R-084)."""
    return earlier if later in _STICKS.get(earlier, ()) else later


def merge_all(actions: Iterable[ChangeAction]) -> ChangeAction | None:
    """The action of a whole sequence, None for an empty one. Created, deleted and restored again is created."""
    known = list(actions)
    if not known:
        return None
    merged = reduce(merge_actions, known)
    return ChangeAction.CREATED if merged is ChangeAction.RESTORED and ChangeAction.CREATED in known else merged


def observed_action(delta: RowDelta) -> ChangeAction | None:
    """What the database saw happen to a record; None for a renumbering or for one made and removed again."""
    if delta.is_relation or delta.is_passing or delta.is_renumbering:
        return None
    before, after = delta.before, delta.after
    if after is None:
        return ChangeAction.DELETED
    if before is None:
        return _new_row(delta)
    if after.deleted != before.deleted:
        return ChangeAction.DELETED if after.deleted else ChangeAction.RESTORED
    if after.live_uid and after.version_state != before.version_state:
        return _version_action(after.version_state)
    return ChangeAction.MOVED if after.pid != before.pid else ChangeAction.UPDATED


def _new_row(delta: RowDelta) -> ChangeAction | None:
    after = delta.after
    if after is None or after.deleted:
        return ChangeAction.DELETED
    return _version_action(after.version_state) if after.live_uid else ChangeAction.CREATED


def _version_action(state: int) -> ChangeAction:
    if state == VersionState.DELETED:
        return ChangeAction.DELETED
    return ChangeAction.MOVED if state == VersionState.MOVED else ChangeAction.UPDATED


def agree(reported: ChangeAction | None, delta: RowDelta) -> ChangeAction | None:
    """One action from what the DataHandler reported and what the database saw.

    The database decides whether a row came, went or came back; between moved and updated the report does, because it
    knows the order. A report of a row that was made and removed again names nothing that is left.
    """
    observed = observed_action(delta)
    if delta.is_passing:
        return None
    if observed in (ChangeAction.CREATED, ChangeAction.DELETED, ChangeAction.RESTORED):
        return observed
    if reported in (ChangeAction.MOVED, ChangeAction.UPDATED):
        return ChangeAction.MOVED if observed is ChangeAction.MOVED and _is_version(delta) else reported
    return observed if observed is not None or reported is None else ChangeAction.UPDATED


def _is_version(delta: RowDelta) -> bool:
    return delta.after is not None and delta.after.live_uid > 0
