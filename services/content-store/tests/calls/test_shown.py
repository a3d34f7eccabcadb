"""More than the card showed (CALLS 4)."""

from __future__ import annotations

from collections import Counter

from content_store.calls.shown import exceeded
from hypothesis import given
from hypothesis import strategies as st
from remit_contracts.calls import ShownChange

LINES = st.builds(
    ShownChange,
    table=st.sampled_from(["pages", "tt_content"]),
    action=st.sampled_from(["created", "updated"]),
    record=st.sampled_from(["1", "NEW1", "new"]),
    pid=st.sampled_from(["1", "2"]),
)


@given(st.lists(LINES, max_size=8), st.lists(LINES, max_size=8))
def test_what_is_left_over_is_the_difference_of_the_multisets(
    shown: list[ShownChange], changed: list[ShownChange]
) -> None:
    assert Counter(exceeded(shown, changed)) == Counter(changed) - Counter(shown)


@given(st.lists(LINES, max_size=8), st.randoms())
def test_less_than_shown_in_any_order_is_fine(shown: list[ShownChange], random: object) -> None:
    fewer = shown[::2]
    random.shuffle(fewer)  # type: ignore[attr-defined]
    assert exceeded(shown, fewer) == ()


@given(st.lists(LINES, max_size=8), LINES)
def test_the_same_line_once_more_is_too_much(shown: list[ShownChange], line: ShownChange) -> None:
    assert exceeded(shown, [*shown, line]) == (line,)
