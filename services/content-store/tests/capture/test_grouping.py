from __future__ import annotations

import pytest
from content_store.capture.grouping import group_rows
from content_store.capture.model import CapturedRow, Identity, Operation, Relation
from hypothesis import given
from hypothesis import strategies as st

identities = st.builds(Identity, pid=st.integers(0, 3), deleted=st.booleans())
relations = st.builds(Relation, st.integers(1, 2), st.integers(1, 2))


@st.composite
def histories(draw: st.DrawFn) -> list[CapturedRow]:
    """Statements on a few rows, as a database could have run them: each begins where the one before ended."""
    now: dict[int, Identity | None] = {uid: draw(st.none() | identities) for uid in (1, 2, 3)}
    rows = []
    for uid in draw(st.lists(st.sampled_from((1, 2, 3)), max_size=12)):
        before = now[uid]
        after = draw(identities if before is None else st.none() | identities)
        operation = Operation.INSERT if before is None else Operation.DELETE if after is None else Operation.UPDATE
        other = operation is not Operation.UPDATE or draw(st.booleans())
        rows.append(CapturedRow("pages", operation, uid, before, after, other, draw(st.booleans())))
        now[uid] = after
    return rows


@pytest.mark.req("S-53")
@given(histories())
def test_a_delta_spans_from_the_first_before_to_the_last_after(rows: list[CapturedRow]) -> None:
    deltas = {delta.uid: delta for delta in group_rows(rows)}
    assert set(deltas) == {row.uid for row in rows}
    for uid, delta in deltas.items():
        own = [row for row in rows if row.uid == uid]
        assert (delta.before, delta.after) == (own[0].before, own[-1].after)
        assert delta.other_changed == any(row.other_changed for row in own)
        assert delta.sorting_changed == any(row.sorting_changed for row in own)


@given(histories())
def test_a_delta_is_one_kind_of_change_at_most(rows: list[CapturedRow]) -> None:
    for delta in group_rows(rows):
        assert sum((delta.is_new, delta.is_gone, delta.is_passing, delta.is_renumbering)) <= 1


@given(histories())
def test_grouping_keeps_the_order_of_first_appearance(rows: list[CapturedRow]) -> None:
    assert [delta.uid for delta in group_rows(rows)] == list(dict.fromkeys(row.uid for row in rows))


@given(st.lists(st.tuples(st.sampled_from(list(Operation)), relations), max_size=12))
def test_mm_rows_are_counted(steps: list[tuple[Operation, Relation]]) -> None:
    rows = [CapturedRow("mm", operation, relation=relation) for operation, relation in steps]
    for delta in group_rows(rows):
        own = [operation for operation, relation in steps if relation == delta.relation]
        assert delta.relation_change == own.count(Operation.INSERT) - own.count(Operation.DELETE)
        assert delta.is_renumbering == (delta.relation_change == 0)


@pytest.mark.req("S-54")
def test_only_the_sorting_column_is_a_renumbering() -> None:
    place = Identity(pid=1)
    (delta,) = group_rows([CapturedRow("pages", Operation.UPDATE, 1, place, place, False, True)])
    assert delta.is_renumbering


@pytest.mark.req("S-54")
@pytest.mark.parametrize("after", [Identity(pid=2), Identity(pid=1, deleted=True), Identity(pid=1, pointers={"a": 1})])
def test_another_place_is_no_renumbering(after: Identity) -> None:
    (delta,) = group_rows([CapturedRow("pages", Operation.UPDATE, 1, Identity(pid=1), after, False, True)])
    assert not delta.is_renumbering


def test_a_row_removed_and_made_again_is_changed() -> None:
    place = Identity(pid=1)
    (delta,) = group_rows(
        [
            CapturedRow("pages", Operation.DELETE, 1, place, None),
            CapturedRow("pages", Operation.INSERT, 1, None, place),
        ]
    )
    assert not delta.is_renumbering
    assert not delta.identity_changed
    assert delta.other_changed
