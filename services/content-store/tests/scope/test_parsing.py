"""Strict readers of datamap and cmdmap values (S-42)."""

from __future__ import annotations

import pytest
from content_store.scope import parsing
from content_store.scope.parsing import Destination, Paste, Placeholder, RelationItem, Unreadable
from hypothesis import given
from hypothesis import strategies as st

TABLES = frozenset({"tt_content", "pages", "sys_file_reference", "tx_a_b"})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
NOT_CANONICAL = ["+5", "05", "5 ", " 5", "-5", "5.0", "٥", "1e1", "0x5", "", " ", "5\x00", "5\n", "true", str(2**63)]


@pytest.mark.req("S-42")
@pytest.mark.parametrize("value", [*NOT_CANONICAL, True, False, 5.0, -1, 2**63, 2**31, None, [5], {"a": 5}])
def test_a_uid_is_canonical_or_refused(value: object) -> None:
    with pytest.raises(Unreadable):
        parsing.canonical_uid(value)


@pytest.mark.req("S-42")
@pytest.mark.parametrize(("value", "uid"), [("0", 0), ("5", 5), (5, 5), ("2147483647", 2**31 - 1)])
def test_a_canonical_uid_is_read(value: object, uid: int) -> None:
    assert parsing.canonical_uid(value) == uid


@pytest.mark.req("S-42")
@given(st.integers(min_value=0, max_value=2**31 - 1))
def test_every_uid_is_read_as_number_and_as_text(uid: int) -> None:
    assert parsing.canonical_uid(uid) == parsing.canonical_uid(str(uid)) == uid


@pytest.mark.req("S-42")
@given(st.text(max_size=12))
def test_a_text_is_its_own_canonical_form_or_refused(text: str) -> None:
    try:
        uid = parsing.canonical_uid(text)
    except Unreadable:
        return
    assert str(uid) == text


@pytest.mark.req("S-42")
@pytest.mark.parametrize("value", [None, ""])
def test_an_empty_pointer_or_language_is_none_and_default(value: object) -> None:
    assert parsing.pointer(value) == 0
    assert parsing.language(value) == 0


@pytest.mark.req("S-06", "S-42")
def test_all_languages_is_read_in_both_forms_and_in_no_other() -> None:
    assert parsing.language(-1) == parsing.language("-1") == -1
    for value in ("-01", "-1 ", -1.0, -2, "-2", True, [-1]):
        with pytest.raises(Unreadable):
            parsing.language(value)


@pytest.mark.req("S-31", "S-42")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, Destination(0)),
        ("12", Destination(12)),
        (-12, Destination(12, after=True)),
        ("-12", Destination(12, after=True)),
        ("NEW1", Destination(Placeholder("NEW1"))),
        ("-NEW1", Destination(Placeholder("NEW1"), after=True)),
    ],
)
def test_a_destination_is_a_page_an_anchor_or_a_placeholder(value: object, expected: Destination) -> None:
    assert parsing.destination(value) == expected


@pytest.mark.req("S-31", "S-42")
@pytest.mark.parametrize(
    "value", [None, "", "-", "-0", "--5", "+5", "05", "5 ", "- 5", True, 5.0, [5], {}, 2**63, "new1"]
)
def test_an_indefinite_destination_is_refused(value: object) -> None:
    with pytest.raises(Unreadable):
        parsing.destination(value)


@pytest.mark.req("S-35", "S-42")
def test_a_paste_array_is_read_as_the_handler_reads_it() -> None:
    value = {"action": "paste", "target": "-7", "update": {"colPos": 2}}
    assert parsing.paste(value) == Paste(Destination(7, after=True), {"colPos": 2})
    assert parsing.paste({"target": 3, "ignoreLocalization": True}) == Paste(Destination(3), None, True)
    assert parsing.paste(3) == Paste(Destination(3))
    # An empty map of PHP is an empty list in JSON.
    assert parsing.paste({"target": 3, "update": []}) == Paste(Destination(3))


@pytest.mark.req("S-35", "S-42")
@pytest.mark.parametrize(
    "value",
    [
        {},
        {"action": "paste"},
        {"action": "cut", "target": 3},
        {"target": 3, "other": 1},
        {"target": "3 "},
        {"target": 3, "update": 5},
        [3],
    ],
)
def test_an_unreadable_paste_array_is_refused(value: object) -> None:
    with pytest.raises(Unreadable):
        parsing.paste(value)


@pytest.mark.req("S-33", "S-42")
@pytest.mark.parametrize("value", [None, "", 0, "0", []])
def test_an_empty_list_lists_nothing(value: object) -> None:
    assert parsing.relation_items(value, TABLES) == []


@pytest.mark.req("S-33", "S-42")
def test_items_are_placeholders_uids_or_table_and_uid_at_the_last_underscore() -> None:
    read = parsing.relation_items("NEW1,5,tt_content_7,tx_a_b_9,tt_content_NEW3", TABLES)
    assert read == [
        Placeholder("NEW1"),
        RelationItem(5),
        RelationItem(7, "tt_content"),
        RelationItem(9, "tx_a_b"),
        Placeholder("NEW3"),
    ]
    assert parsing.relation_items([5, "6"], TABLES) == [RelationItem(5), RelationItem(6)]
    assert parsing.relation_items(5, TABLES) == [RelationItem(5)]


@pytest.mark.req("S-33", "S-42")
@pytest.mark.parametrize(
    "value",
    [
        "tt_content_",
        "unknown_5",
        "5 ",
        "+5",
        "05",
        "1,,2",
        "1,2,",
        "tt_content_05",
        "_5",
        "0,1",
        False,
        True,
        0.0,
        [[5]],
        [None],
        {"0": 5},
    ],
)
def test_an_item_without_a_definite_record_refuses_the_list(value: object) -> None:
    with pytest.raises(Unreadable):
        parsing.relation_items(value, TABLES)


@pytest.mark.req("S-42")
@given(JSON)
def test_no_value_is_skipped_or_raises_anything_else(value: object) -> None:
    readers = (
        parsing.canonical_uid,
        parsing.pointer,
        parsing.language,
        parsing.destination,
        parsing.paste,
        lambda given: parsing.relation_items(given, TABLES),
    )
    for reader in readers:
        try:
            reader(value)
        except Unreadable:
            continue
