"""Three witnesses become one list: joined, merged, cut at its limit, never claimed wider than reported. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from content_store.calls.collector import (
    Observation,
    StoredFacts,
    ToolChangeCollector,
    last_identity,
    without_changes,
)
from content_store.calls.witness import ChangeWitness, Report
from content_store.capture.model import Identity, Relation, RowDelta
from content_store.capture.relations import RelationEnds
from remit_contracts.changes import ChangeAction as A
from remit_contracts.changes import Coverage, RefusedWrite, Witness

MM = "sys_category_record_mm"
ENDS = {MM: RelationEnds(frozenset({"sys_category"}), frozenset(), any_foreign=True)}
HERE, GONE = Identity(pid=10), Identity(pid=10, deleted=True)


def row(uid: int, before: Identity | None = HERE, after: Identity | None = HERE, *, other: bool = True) -> RowDelta:
    return RowDelta("tt_content", uid, before, after, other, sorting_changed=not other)


def reported(
    *reports: tuple[int, A] | tuple[int, A, Witness], wrote: bool = True, history: int = 0, ran: bool = True
) -> ChangeWitness:
    witness = ChangeWitness()
    witness.ran = ran
    witness.history_rows = history
    for uid, action, *by in reports:
        witness.reports.append(Report("tt_content", uid, action, by[0] if by else Witness.HOOKS, wrote))
    return witness


def collected(witness: ChangeWitness, *deltas: RowDelta) -> list[tuple[int, A, bool]]:
    return [(o.uid, o.action, o.relation) for o in ToolChangeCollector(witness, ENDS).observe(deltas)]


def facts(observations: Sequence[Observation]) -> dict[tuple[str, int], StoredFacts]:
    return {o.key: StoredFacts(pid=10, live_uid=o.live_uid, language=0, hidden=False) for o in observations}


@pytest.mark.req("C-03", "C-05")
def test_reported_rows_come_first_in_their_order_then_what_only_the_database_saw() -> None:
    witness = reported((7, A.UPDATED), (5, A.CREATED), (5, A.UPDATED))
    assert collected(witness, row(3), row(5, None), row(7)) == [
        (7, A.UPDATED, False),
        (5, A.CREATED, False),
        (3, A.UPDATED, False),
    ]


@pytest.mark.req("C-03")
def test_history_adds_what_no_hook_names_and_hooks_win_where_both_speak() -> None:
    witness = reported((5, A.MOVED), (5, A.UPDATED, Witness.HISTORY), (6, A.DELETED, Witness.HISTORY))
    assert collected(witness, row(5), row(6, HERE, GONE)) == [(5, A.MOVED, False), (6, A.DELETED, False)]


@pytest.mark.req("C-16", "C-21")
@pytest.mark.parametrize("action", A)
def test_without_the_database_only_an_update_that_wrote_nothing_is_listed(action: A) -> None:
    assert collected(reported((5, action))) == []
    idle = [(5, A.UPDATED, False)] if action is A.UPDATED else []
    assert collected(reported((5, action), wrote=False)) == idle


@pytest.mark.req("C-05", "S-54")
def test_a_record_made_and_removed_and_a_renumbered_neighbour_are_not_listed() -> None:
    witness = reported((5, A.CREATED), (5, A.DELETED))
    assert collected(witness, row(5, None, None), row(6, other=False)) == []


@pytest.mark.req("C-05")
def test_an_mm_row_names_both_ends_once_and_none_that_is_gone() -> None:
    came = RowDelta(MM, 0, None, None, True, False, Relation(3, 5, "tt_content"), 1)
    reordered = RowDelta(MM, 0, None, None, True, True, Relation(9, 5, "tt_content"), 0)
    observed = ToolChangeCollector(reported((5, A.UPDATED)), ENDS).observe([row(5), came, reordered])
    assert [(o.table, o.uid, o.action, o.relation) for o in observed] == [
        ("tt_content", 5, A.UPDATED, False),
        ("sys_category", 3, A.UPDATED, True),
    ]
    gone = ToolChangeCollector(reported(), ENDS).observe([row(5, HERE, None), came])
    assert [(o.table, o.action) for o in gone] == [("tt_content", A.DELETED), ("sys_category", A.UPDATED)]


@pytest.mark.req("C-05", "S-08")
def test_a_version_is_listed_as_the_stored_row_with_its_live_uid() -> None:
    version = row(900, None, Identity(pid=10, workspace=2, live_uid=5))
    (observation,) = ToolChangeCollector(reported((5, A.UPDATED)), ENDS).observe([version])
    assert (observation.uid, observation.live_uid, observation.action) == (900, 5, A.UPDATED)
    listed = ToolChangeCollector(reported((5, A.UPDATED)), ENDS).change_set(
        [observation], facts([observation]), ("tt_content", 5), named_target=True
    )
    assert [(c.uid, c.live_uid, c.write_target) for c in listed.changes] == [(900, 5, True)]


@pytest.mark.req("C-07")
@pytest.mark.parametrize(("rows", "omitted", "kept"), [(49, 0, 49), (50, 0, 50), (51, 1, 50), (120, 70, 50)], ids=str)
def test_fifty_are_listed_the_target_among_them_and_the_rest_is_counted(rows: int, omitted: int, kept: int) -> None:
    collector = ToolChangeCollector(reported(*((uid, A.UPDATED) for uid in range(1, rows + 1))), ENDS)
    observed = collector.observe([row(uid) for uid in range(1, rows + 1)])
    changes = collector.change_set(observed, facts(observed), ("tt_content", rows), named_target=True)
    assert (len(changes.changes), changes.changes_omitted) == (kept, omitted)
    assert [c.uid for c in changes.changes if c.write_target] == [rows]
    assert len({c.uid for c in changes.changes}) == kept


@pytest.mark.req("C-07")
@pytest.mark.parametrize(("history", "omitted"), [(5000, 0), (5001, 1)])
def test_a_chain_that_is_too_long_counts_as_one_more(history: int, omitted: int) -> None:
    collector = ToolChangeCollector(reported((5, A.UPDATED), history=history), ENDS)
    observed = collector.observe([row(5)])
    assert collector.change_set(observed, facts(observed), None, named_target=False).changes_omitted == omitted


@pytest.mark.req("C-09", "C-10", "C-20")
@pytest.mark.parametrize(
    ("target", "named", "coverage"),
    [
        (None, False, Coverage.DATAHANDLER),
        (("tt_content", 5), True, Coverage.DATAHANDLER),
        # The database saw it, no DataHandler said so: listed, not claimed.
        (("tt_content", 3), True, Coverage.NOT_CAPTURED),
        (("pages", 5), True, Coverage.NOT_CAPTURED),
        # A placeholder of a record that was never created.
        (None, True, Coverage.NOT_CAPTURED),
    ],
)
def test_coverage_is_never_wider_than_what_was_reported(
    target: tuple[str, int] | None, named: bool, coverage: Coverage
) -> None:
    collector = ToolChangeCollector(reported((5, A.UPDATED)), ENDS)
    observed = collector.observe([row(5), row(3)])
    changes = collector.change_set(observed, facts(observed), target, named_target=named)
    assert changes.coverage is coverage
    assert [c.uid for c in changes.changes] == [5, 3]
    assert set(changes.witnesses) == {"hooks", "history", "database"}


@pytest.mark.req("C-10")
def test_a_call_in_which_no_handler_ran_names_no_witness() -> None:
    assert ToolChangeCollector(reported(ran=False), ENDS).change_set([], {}, None, named_target=False).witnesses == ()


@pytest.mark.req("C-16")
def test_a_row_that_is_gone_keeps_its_last_place_and_one_nobody_can_read_is_left_out() -> None:
    hard = Observation("tt_content", 5, A.DELETED, exists=False, delta=row(5, Identity(pid=7, language=1), None))
    known = last_identity(hard)
    assert known == StoredFacts(pid=7, language=1)
    assert last_identity(Observation("tt_content", 5, A.UPDATED)) is None
    collector = ToolChangeCollector(reported(), ENDS)
    unreadable = Observation("tt_content", 6, A.UPDATED)
    assert known is not None
    changes = collector.change_set([hard, unreadable], {hard.key: known}, None, named_target=False)
    assert [(c.uid, c.language) for c in changes.changes] == [(5, 1)]


@pytest.mark.req("S-74", "S-75")
def test_after_a_rollback_nothing_is_named_as_changed_and_the_refusals_stay() -> None:
    refused = (RefusedWrite(operation="effect", table="tt_content", uid=7, reason="outside_scope", undone=True),)
    collector = ToolChangeCollector(reported((5, A.UPDATED)), ENDS)
    observed = collector.observe([row(5)])
    undone = without_changes(collector.change_set(observed, facts(observed), None, named_target=False), refused)
    assert (undone.changes, undone.changes_omitted, undone.refused) == ((), 0, refused)
