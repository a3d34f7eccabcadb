"""Several actions and several witnesses become one action (R-084, C-05)."""

from __future__ import annotations

import pytest
from content_store.calls.merging import agree, merge_actions, merge_all, observed_action
from content_store.capture.model import Identity, RowDelta
from remit_contracts.changes import ChangeAction as A

ORDER = (A.CREATED, A.UPDATED, A.MOVED, A.DELETED, A.RESTORED)
MATRIX = {
    A.CREATED: (A.CREATED, A.CREATED, A.CREATED, A.DELETED, A.CREATED),
    A.UPDATED: (A.CREATED, A.UPDATED, A.MOVED, A.DELETED, A.RESTORED),
    A.MOVED: (A.CREATED, A.UPDATED, A.MOVED, A.DELETED, A.RESTORED),
    A.DELETED: (A.CREATED, A.DELETED, A.DELETED, A.DELETED, A.RESTORED),
    A.RESTORED: (A.CREATED, A.RESTORED, A.RESTORED, A.DELETED, A.RESTORED),
}


@pytest.mark.req("R-084", "C-05")
@pytest.mark.parametrize("earlier", ORDER)
@pytest.mark.parametrize("column", range(5))
def test_each_cell_of_the_matrix(earlier: A, column: int) -> None:
    assert merge_actions(earlier, ORDER[column]) is MATRIX[earlier][column]


@pytest.mark.req("R-086")
def test_created_deleted_and_restored_is_created() -> None:
    assert merge_all([A.CREATED, A.DELETED, A.RESTORED]) is A.CREATED
    assert merge_all([A.UPDATED, A.DELETED, A.RESTORED]) is A.RESTORED
    assert merge_all([]) is None


def delta(before: Identity | None, after: Identity | None, *, other: bool = True) -> RowDelta:
    return RowDelta("tt_content", 5, before, after, other, sorting_changed=True)


HERE, THERE = Identity(pid=1), Identity(pid=2)
GONE = Identity(pid=1, deleted=True)


@pytest.mark.req("S-53", "S-54")
@pytest.mark.parametrize(
    ("row", "action"),
    [
        (delta(None, HERE), A.CREATED),
        (delta(HERE, None), A.DELETED),
        (delta(HERE, GONE), A.DELETED),
        (delta(GONE, HERE), A.RESTORED),
        (delta(HERE, THERE), A.MOVED),
        (delta(HERE, HERE), A.UPDATED),
        (delta(HERE, HERE, other=False), None),
        (delta(None, None), None),
        (delta(None, GONE), A.DELETED),
        (delta(None, Identity(pid=1, live_uid=4, workspace=2)), A.UPDATED),
        (delta(None, Identity(pid=1, live_uid=4, workspace=2, version_state=2)), A.DELETED),
        (delta(None, Identity(pid=2, live_uid=4, workspace=2, version_state=4)), A.MOVED),
    ],
)
def test_what_the_database_saw(row: RowDelta, action: A | None) -> None:
    assert observed_action(row) is action


@pytest.mark.req("C-05", "C-16", "C-21")
@pytest.mark.parametrize(
    ("reported", "row", "action"),
    [
        (A.UPDATED, delta(None, HERE), A.CREATED),
        (A.DELETED, delta(HERE, HERE), A.UPDATED),
        (A.MOVED, delta(HERE, HERE, other=False), A.MOVED),
        (A.UPDATED, delta(HERE, THERE), A.UPDATED),
        (None, delta(HERE, HERE, other=False), None),
        (A.CREATED, delta(None, None), None),
        (A.UPDATED, delta(HERE, GONE), A.DELETED),
    ],
)
def test_the_database_decides_whether_a_row_came_or_went(reported: A | None, row: RowDelta, action: A | None) -> None:
    assert agree(reported, row) is action
