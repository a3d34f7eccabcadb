from __future__ import annotations

from uuid import UUID, uuid5

import pytest
from chat_gateway.changes.merge import (
    CallMark,
    MergedRow,
    StoredFacts,
    merge_actions,
    merge_lists,
    merge_observations,
    merge_rows,
)
from hypothesis import given
from hypothesis import strategies as st
from remit_contracts.changes import ChangeAction

RUN = UUID(int=1)
C, U, M, D, R = (
    ChangeAction.CREATED,
    ChangeAction.UPDATED,
    ChangeAction.MOVED,
    ChangeAction.DELETED,
    ChangeAction.RESTORED,
)
MATRIX = {
    (C, C): C, (C, U): C, (C, M): C, (C, D): D, (C, R): C,
    (U, C): C, (U, U): U, (U, M): M, (U, D): D, (U, R): R,
    (M, C): C, (M, U): U, (M, M): M, (M, D): D, (M, R): R,
    (D, C): C, (D, U): D, (D, M): D, (D, D): D, (D, R): R,
    (R, C): C, (R, U): R, (R, M): R, (R, D): D, (R, R): R,
}  # fmt: skip


@pytest.mark.req("R-084", "R-073")
@pytest.mark.parametrize(("pair", "shown"), list(MATRIX.items()))
def test_every_cell_of_the_matrix(pair: tuple[ChangeAction, ChangeAction], shown: ChangeAction) -> None:
    action, created_here = merge_actions((pair[0], False), (pair[1], False))
    assert action is shown
    assert created_here is (pair == (C, D))


@pytest.mark.req("R-086", "A-06")
def test_created_deleted_restored_is_created_either_way() -> None:
    one = merge_actions(merge_actions((C, False), (D, False)), (R, False))
    other = merge_actions((C, False), merge_actions((D, False), (R, False)))
    assert one == other == (C, False)
    assert merge_actions((D, False), (U, False)) == (D, False)


actions = st.sampled_from([None, C, U, M, D, R])


@st.composite
def observations(draw: st.DrawFn, size: int = 12) -> list[MergedRow]:
    rows = []
    for number in range(draw(st.integers(0, size))):
        action = draw(actions)
        uid = draw(st.integers(1, 3))
        facts = None
        if action is not None:
            facts = StoredFacts(
                uid=uid + 100,
                workspace_id=draw(st.integers(0, 2)),
                live_uid=uid,
                language=draw(st.sampled_from([None, 0, 1])),
                hidden=draw(st.sampled_from([None, True, False])),
            )
        run = uuid5(RUN, str(draw(st.integers(0, 2))))
        rows.append(
            MergedRow(
                key=("pages", uid),
                order=(0, number),
                action=action,
                facts=facts,
                target=draw(st.booleans()),
                failed=draw(st.booleans()),
                partial=draw(st.booleans()),
                relation=draw(st.booleans()) if action is not None else False,
                calls=(CallMark(run, str(draw(st.integers(0, 3))), "tool", None),),
                runs=(run,),
            )
        )
    return rows


@pytest.mark.req("R-085", "R-079")
@given(observations(), st.data())
def test_merging_is_associative_over_chunks_in_order(rows: list[MergedRow], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(rows)))
    second = data.draw(st.integers(first, len(rows)))
    a, b, c = (merge_observations(part) for part in (rows[:first], rows[first:second], rows[second:]))
    whole = merge_observations(rows)
    assert merge_lists(merge_lists(a, b), c) == whole
    assert merge_lists(a, merge_lists(b, c)) == whole


@pytest.mark.req("R-073", "A-07")
@given(observations())
def test_markers_stick_and_the_latest_observation_supplies_the_facts(rows: list[MergedRow]) -> None:
    for key, row in merge_observations(rows).items():
        mine = [item for item in rows if item.key == key]
        assert row.target is any(item.target for item in mine)
        assert row.failed is any(item.failed for item in mine)
        assert row.partial is any(item.partial for item in mine)
        observed = [item.facts for item in mine if item.facts is not None]
        assert row.facts == (observed[-1] if observed else None)
        assert row.legacy is (not observed)
        assert row.order == mine[-1].order


@pytest.mark.req("R-079")
def test_a_legacy_row_becomes_an_observed_one_and_stays_a_target() -> None:
    legacy = MergedRow(key=("pages", 3), order=(0, 1), target=True)
    observed = MergedRow(key=("pages", 3), order=(1, 1), action=U, facts=StoredFacts(uid=3))
    for row in (merge_rows(legacy, observed), merge_rows(observed, legacy)):
        assert row.action is U
        assert row.target
        assert not row.legacy
        assert row.facts == StoredFacts(uid=3)
