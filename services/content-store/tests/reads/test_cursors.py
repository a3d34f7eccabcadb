from __future__ import annotations

import pytest
from content_store.errors import CursorInvalidError
from content_store.reads.cursors import decode_cursor, encode_cursor
from hypothesis import given, settings
from hypothesis import strategies as st

NUMBERS = st.lists(st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1), min_size=1, max_size=3)


@settings(deadline=None)
@given(NUMBERS)
def test_a_cursor_comes_back_as_it_went(values: list[int]) -> None:
    assert decode_cursor(encode_cursor(values), len(values)) == values


@settings(deadline=None)
@given(NUMBERS)
def test_a_cursor_of_another_list_is_refused(values: list[int]) -> None:
    with pytest.raises(CursorInvalidError):
        decode_cursor(encode_cursor(values), len(values) + 1)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_other_text_is_refused_or_read_as_numbers(text: str) -> None:
    try:
        values = decode_cursor(text, 1)
    except CursorInvalidError:
        return
    assert decode_cursor(encode_cursor(values), 1) == values


@pytest.mark.parametrize("values", [[True], [1.5], ["1"], [2**63], [None]])
def test_values_no_list_is_ordered_by(values: list[int]) -> None:
    with pytest.raises(CursorInvalidError):
        decode_cursor(encode_cursor(values), 1)
