"""What an entry of a datamap names, judged before a field is processed; pure, over the tree of the test store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.entries import EntryCheck, EntryVerdict
from remit_contracts.scope import EffectiveAssignmentScope, ScopeReason
from store_support.known import TOWN, KnownTopology, content

HALL: dict[str, Any] = {"pages": [{"page": 10}]}
HALL_AND_POOL: dict[str, Any] = {"pages": [{"page": 10}, {"page": 11}]}
ENGLISH: dict[str, Any] = {**HALL, "languages": [0]}
#: Records the same call made before: a page and an element in scope, an element outside, a page with the uid of one.
MADE = {
    "NEWpage": ("pages", 10),
    "NEWin": ("tt_content", 9),
    "NEWout": ("tt_content", 7),
    "NEWother": ("pages", 7),
}
OUTSIDE, UNREADABLE = ScopeReason.OUTSIDE_SCOPE, ScopeReason.SCOPE_UNRESOLVABLE
LANGUAGE, TABLE = ScopeReason.LANGUAGE_NOT_ALLOWED, ScopeReason.TABLE_NOT_ALLOWED
Row = dict[str, Any]


def check(limits: Mapping[str, Any], lister: tuple[str, str] | None = None) -> EntryCheck:
    scope = AssignmentScopeChecker(EffectiveAssignmentScope.model_validate(limits))
    topology = KnownTopology((*TOWN, content(12, 11)))
    return EntryCheck(scope, topology, MADE.get, lambda _table, _name: lister)


def reference(owner: object, **values: Any) -> Row:
    return {"pid": 10, "uid_local": 3, "uid_foreign": owner, "tablenames": "tt_content", **values}


UPDATES: list[Any] = [
    # What is stored decides first, and the page it lies on is named.
    pytest.param(HALL, "tt_content", 9, {"header": "x"}, None, id="inside"),
    pytest.param(HALL, "tt_content", 7, {"header": "x"}, (OUTSIDE, 20), id="outside"),
    pytest.param(HALL, "tt_content", 4711, {"header": "x"}, (UNREADABLE, None), id="not there"),
    pytest.param({**HALL, "tables": ["pages"]}, "tt_content", 9, {"header": "x"}, (TABLE, 10), id="table"),
    pytest.param(ENGLISH, "tt_content", 8, {"header": "x"}, (LANGUAGE, 10), id="language it has"),
    pytest.param(ENGLISH, "tt_content", 9, {"sys_language_uid": 1}, (LANGUAGE, 10), id="language it gets"),
    pytest.param(ENGLISH, "tt_content", 9, {"sys_language_uid": 0}, None, id="language that is listed"),
    pytest.param(ENGLISH, "sys_file_reference", 50, {"title": "x"}, None, id="no language given"),
    pytest.param(HALL, "tt_content", 9, {"sys_language_uid": "01"}, (UNREADABLE, 10), id="unreadable language"),
    # What it points at.
    pytest.param(HALL, "tt_content", 8, {"l18n_parent": 5}, None, id="parent inside"),
    pytest.param(HALL, "tt_content", 8, {"l18n_parent": 0}, None, id="no parent any more"),
    pytest.param(HALL, "tt_content", 8, {"l18n_parent": 7}, (OUTSIDE, 10), id="parent outside"),
    pytest.param(HALL, "tt_content", 8, {"l18n_parent": 4711}, (UNREADABLE, 10), id="parent not there"),
    pytest.param(HALL, "tt_content", 8, {"l18n_parent": "NEWin"}, None, id="parent made before"),
    pytest.param(HALL, "tt_content", 8, {"l18n_parent": "NEWout"}, (OUTSIDE, 10), id="parent made before, outside"),
    pytest.param(HALL, "tt_content", 8, {"l18n_parent": "NEWother"}, (UNREADABLE, 10), id="parent of another table"),
    pytest.param(HALL, "tt_content", 8, {"l18n_parent": "NEWlater"}, None, id="parent still to be made"),
    pytest.param(HALL, "tt_content", 8, {"l18n_parent": "+5"}, (UNREADABLE, 10), id="unreadable parent"),
    pytest.param(HALL, "sys_file_reference", 50, {"uid_foreign": 9}, None, id="another owner inside"),
    pytest.param(HALL, "sys_file_reference", 50, {"uid_foreign": 7}, (OUTSIDE, 10), id="another owner outside"),
    pytest.param(HALL, "sys_file_reference", 50, {"uid_foreign": ""}, None, id="no owner any more"),
    # The stored owner is 5; as a page it is nowhere. A key that is not in the entry keeps its stored value.
    pytest.param(HALL, "sys_file_reference", 50, {"tablenames": "pages"}, (UNREADABLE, 10), id="owner's table alone"),
    pytest.param(HALL, "sys_file_reference", 50, {"tablenames": 5}, (UNREADABLE, 10), id="unreadable owner's table"),
    # What it lists.
    pytest.param(HALL, "tt_content", 9, {"image": "50"}, None, id="lists a child inside"),
    pytest.param(HALL, "tt_content", 9, {"image": "50,70"}, (OUTSIDE, 10), id="lists a child outside"),
    pytest.param(HALL, "tt_content", 9, {"image": "50,4711"}, (UNREADABLE, 10), id="lists a child not there"),
    pytest.param(HALL, "tt_content", 9, {"image": "NEW1,50"}, None, id="lists a child to be made"),
    pytest.param(HALL, "tt_content", 9, {"image": "070"}, (UNREADABLE, None), id="unreadable list"),
    pytest.param(HALL, "tt_content", 9, {"image": "tt_content_50"}, (UNREADABLE, 10), id="lists another table"),
    pytest.param(
        {**HALL, "tables": ["tt_content"]},
        "tt_content",
        9,
        {"image": "50"},
        (TABLE, 10),
        id="lists a table not allowed",
    ),
]


@pytest.mark.req("S-30", "S-33", "S-34", "S-42", "S-46")
@pytest.mark.parametrize(("limits", "table", "uid", "row", "verdict"), UPDATES)
async def test_an_update_is_judged_by_what_is_stored_and_by_what_it_names(
    limits: Row, table: str, uid: int, row: Row, verdict: tuple[ScopeReason, int | None] | None
) -> None:
    expected = EntryVerdict(*verdict) if verdict is not None else None
    assert await check(limits).update(table, uid, row) == expected


NEW: list[Any] = [
    pytest.param(HALL, "tt_content", {"pid": 10}, None, id="inside"),
    pytest.param(HALL, "tt_content", {"pid": 30}, None, id="on a page translation"),
    pytest.param(HALL, "tt_content", {"pid": 20}, (OUTSIDE, 20), id="outside"),
    pytest.param(HALL, "tt_content", {"pid": 0}, (OUTSIDE, 0), id="at the root"),
    pytest.param(HALL, "tt_content", {}, (UNREADABLE, None), id="nowhere"),
    pytest.param(HALL, "tt_content", {"pid": -9}, None, id="behind a record inside"),
    pytest.param(HALL, "tt_content", {"pid": -7}, (OUTSIDE, 20), id="behind a record outside"),
    pytest.param(HALL, "tt_content", {"pid": -4711}, (UNREADABLE, None), id="behind nothing"),
    pytest.param(HALL, "tt_content", {"pid": "NEWpage"}, None, id="on a page made before"),
    pytest.param(HALL, "tt_content", {"pid": "NEWother"}, (OUTSIDE, 7), id="on a page made before, outside"),
    pytest.param(HALL, "tt_content", {"pid": "NEWin"}, (UNREADABLE, None), id="on an element"),
    pytest.param(HALL, "tt_content", {"pid": "-NEWin"}, None, id="behind an element made before"),
    pytest.param(HALL, "tt_content", {"pid": "-NEWpage"}, (UNREADABLE, None), id="behind a page"),
    pytest.param(HALL, "tt_content", {"pid": "NEWlater"}, (UNREADABLE, None), id="on a page still to be made"),
    pytest.param({**HALL, "tables": ["pages"]}, "tt_content", {"pid": 10}, (TABLE, 10), id="table"),
    pytest.param(ENGLISH, "tt_content", {"pid": 10}, None, id="in the default language"),
    pytest.param(ENGLISH, "tt_content", {"pid": 10, "sys_language_uid": 1}, (LANGUAGE, 10), id="language"),
    pytest.param(
        HALL, "tt_content", {"pid": 10, "sys_language_uid": "x"}, (UNREADABLE, None), id="unreadable language"
    ),
    pytest.param(
        HALL,
        "tt_content",
        {"pid": 10, "sys_language_uid": 1, "l18n_parent": 9},
        None,
        id="translation beside its record",
    ),
    pytest.param(
        HALL,
        "tt_content",
        {"pid": 10, "sys_language_uid": 1, "l18n_parent": 7},
        (OUTSIDE, 10),
        id="of a record outside",
    ),
    pytest.param(
        HALL_AND_POOL,
        "tt_content",
        {"pid": 11, "sys_language_uid": 1, "l18n_parent": 9},
        (OUTSIDE, 11),
        id="translation elsewhere",
    ),
    pytest.param(
        HALL,
        "tt_content",
        {"pid": 10, "sys_language_uid": 1, "l18n_parent": "NEWout"},
        (OUTSIDE, 10),
        id="translation of a record made before, outside",
    ),
    pytest.param(
        HALL,
        "tt_content",
        {"pid": 10, "sys_language_uid": 1, "l18n_parent": "NEWlater"},
        None,
        id="translation of a record still to be made",
    ),
    pytest.param(HALL, "sys_file_reference", reference(9), None, id="owner inside"),
    pytest.param(HALL, "sys_file_reference", reference(7), (OUTSIDE, 10), id="owner outside"),
    pytest.param(HALL, "sys_file_reference", reference(4711), (OUTSIDE, 10), id="owner not there"),
    pytest.param(HALL, "sys_file_reference", reference("NEWout"), (OUTSIDE, 10), id="owner made before, outside"),
    pytest.param(HALL, "sys_file_reference", reference("NEWpage"), (UNREADABLE, None), id="owner of another table"),
    pytest.param(HALL, "sys_file_reference", reference("NEWlater"), None, id="owner still to be made"),
    pytest.param(HALL, "sys_file_reference", reference("09"), (UNREADABLE, None), id="unreadable owner"),
    pytest.param(HALL, "sys_file_reference", {"pid": 10}, None, id="owner nowhere said"),
    pytest.param(HALL, "tt_content", {"pid": 10, "image": "50"}, None, id="lists a child inside"),
    pytest.param(HALL, "tt_content", {"pid": 10, "image": "70"}, (OUTSIDE, 10), id="lists a child outside"),
    pytest.param(HALL, "tt_content", {"pid": 10, "image": "4711"}, (UNREADABLE, 10), id="lists a child not there"),
    pytest.param(HALL, "tt_content", {"pid": 10, "image": "070"}, (UNREADABLE, None), id="unreadable list"),
]


@pytest.mark.req("S-31", "S-32", "S-33", "S-34", "S-42", "S-46")
@pytest.mark.parametrize(("limits", "table", "row", "verdict"), NEW)
async def test_a_new_row_is_judged_by_where_it_goes_and_by_what_it_names(
    limits: Row, table: str, row: Row, verdict: tuple[ScopeReason, int | None] | None
) -> None:
    expected = EntryVerdict(*verdict) if verdict is not None else None
    assert await check(limits).new(table, "NEW1", row) == expected


@pytest.mark.req("S-31", "S-34")
@pytest.mark.parametrize(
    ("lister", "row", "reason"),
    [
        (("tt_content", "9"), {"pid": 10}, None),
        (("tt_content", "7"), {"pid": 10}, OUTSIDE),
        # It lies on a scoped page, but its owner on another one.
        (("tt_content", "12"), {"pid": 10}, OUTSIDE),
        (("tt_content", "NEWout"), {"pid": 10}, OUTSIDE),
        # A parent that is still to be created is judged by its own entry.
        (("tt_content", "NEWlater"), {"pid": 10}, None),
        (("tt_content", "0"), {"pid": 10}, None),
        (("tt_content", "seven"), {"pid": 10}, UNREADABLE),
        # A pointer of its own counts more than a list.
        (("tt_content", "7"), reference(9), None),
        (("tt_content", "9"), reference(7), OUTSIDE),
    ],
)
async def test_a_child_without_a_pointer_belongs_to_the_record_that_lists_it(
    lister: tuple[str, str], row: Row, reason: ScopeReason | None
) -> None:
    verdict = await check(HALL_AND_POOL, lister).new("sys_file_reference", "NEW1", row)
    assert (verdict.reason if verdict is not None else None) is reason


@pytest.mark.req("S-31", "S-42")
async def test_a_new_row_of_a_table_without_translations_has_neither_language_nor_parent() -> None:
    limits = {"pages": [{"page": 10}], "languages": [1]}
    assert await check(limits).new("sys_redirect", "NEW1", {"pid": 10, "sys_language_uid": 0, "l10n_parent": 7}) is None
