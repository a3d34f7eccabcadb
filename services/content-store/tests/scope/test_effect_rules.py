"""The rules of the effect check over given rows; what real triggers record of real statements is in ``test_effect``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest
from content_store.capture.model import Identity, Relation, RowDelta
from content_store.capture.relations import RelationEnds
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.effect import AssignmentScopeEffect, Change, NotJudgeable, judged_deltas
from content_store.scope.places import Places, RowPlace
from remit_contracts.changes import RefusedWrite
from remit_contracts.scope import EffectiveAssignmentScope
from store_support.known import TOWN, KnownTopology, content, page, reference

HALL: dict[str, Any] = {"pages": [{"page": 10}]}
CATEGORIES = {"sys_category_record_mm": RelationEnds(frozenset({"sys_category"}), frozenset(), any_foreign=True)}
CATEGORY = RowPlace("sys_category", 1, 20, language=0)
CATEGORY_HERE = RowPlace("sys_category", 9, 100, language=0)
#: A version of content 9, and content 6's translation.
DRAFT, AMT = content(900, 10, version_of=9, workspace=1), content(61, 100, 1, parent=6)


def identity(row: RowPlace | None) -> Identity | None:
    if row is None:
        return None
    return Identity(
        pid=row.pid,
        language=row.language,
        parent=row.parent,
        workspace=row.workspace,
        live_uid=row.version_of,
        version_state=row.state,
        deleted=row.deleted,
        pointers=dict(row.pointers),
    )


def delta(before: RowPlace | None, after: RowPlace | None) -> RowDelta:
    row = after or before
    assert row is not None
    return RowDelta(row.table, row.uid, identity(before), identity(after), True, False)


def written(row: RowPlace) -> RowDelta:
    return delta(row, row)


def deleted(row: RowPlace) -> RowDelta:
    return delta(row, replace(row, deleted=True))


def relation(uid: int, change: int) -> RowDelta:
    named = Relation(1, uid, "tt_content", "categories")
    return RowDelta("sys_category_record_mm", 0, None, None, True, False, named, change)


async def found(
    limits: dict[str, Any],
    *deltas: RowDelta,
    stock: Sequence[RowPlace] = (),
    named: Collection[tuple[str, int]] = (),
    gone: RowPlace | None = None,
) -> set[tuple[str, int | None, str]]:
    rows = [row for row in (*TOWN, CATEGORY, AMT) if gone is None or row.key != gone.key]
    topology = KnownTopology((*rows, *stock))
    scope = AssignmentScopeChecker(EffectiveAssignmentScope.model_validate(limits))
    violations = await AssignmentScopeEffect(scope, topology, CATEGORIES).violations(deltas, named)
    return {(violation.table, violation.uid, violation.reason) for violation in violations}


@pytest.mark.req("S-51", "S-53", "S-65", "S-75")
@pytest.mark.parametrize(
    ("before", "after", "pid", "reason"),
    [
        (content(9, 10), content(9, 10), 10, None),
        (content(9, 10), content(9, 20), 20, "outside_scope"),
        (content(9, 20), content(9, 10), 10, "outside_scope"),
        (content(7, 20), content(7, 20), 20, "outside_scope"),
        (content(9, 10), None, 10, None),
        (content(7, 20), None, 20, "outside_scope"),
        (None, content(9, 10), 10, None),
        (None, content(9, 20), 20, "outside_scope"),
        (None, content(9, 20, deleted=True), 20, "outside_scope"),
        (content(7, 20), content(7, 20, deleted=True), 20, "outside_scope"),
        # Undeleted, or written while it is deleted: a row like any other.
        (content(7, 20, deleted=True), content(7, 20), 20, "outside_scope"),
        (content(9, 10, 1, deleted=True), content(9, 10, 1, deleted=True), 10, "language_not_allowed"),
        (content(9, 10, 1), content(9, 10), 10, "language_not_allowed"),
        (content(9, 10), content(9, 10, 1), 10, "language_not_allowed"),
        # Deleted alone it is a write like any other, and counts by where it is put, too.
        (content(9, 10, 1), content(9, 10, 1, deleted=True), 10, "language_not_allowed"),
        (content(9, 10, 1), None, 10, "language_not_allowed"),
        (content(9, 10), content(9, 10, deleted=True), 10, None),
        (content(9, 10), content(9, 20, deleted=True), 20, "outside_scope"),
    ],
)
async def test_a_row_is_judged_where_it_was_and_where_it_is(
    before: RowPlace | None, after: RowPlace | None, pid: int, reason: str | None
) -> None:
    scope = AssignmentScopeChecker(EffectiveAssignmentScope.model_validate({**HALL, "languages": [0]}))
    rows = [row for row in TOWN if row.uid not in (7, 9)] + ([after] if after is not None else [])
    violations = await AssignmentScopeEffect(scope, KnownTopology(rows), {}).violations([delta(before, after)])
    row = after or before
    assert row is not None
    refused = RefusedWrite(operation="effect", table=row.table, uid=row.uid, pid=pid, reason=reason or "", undone=True)
    assert violations == ([refused] if reason is not None else [])


@pytest.mark.req("S-07", "S-35", "S-51")
@pytest.mark.parametrize(
    ("roots", "before", "after", "reason"),
    [
        ([(1, 3)], page(100, 10), page(100, 11), None),
        ([(10, 2), (11, 1)], page(100, 10), page(100, 11), "subtree_outside_scope"),
        ([(10, 2)], page(100, 10), page(100, 11), "outside_scope"),
        # Where it stays, what lies below it is not asked for.
        ([(10, 1)], page(100, 10), page(100, 10), None),
        ([(10, 1)], page(1000, 100), None, "outside_scope"),
        ([(10, 2)], page(1000, 100), None, None),
    ],
)
async def test_a_page_that_was_moved_is_judged_with_what_lies_below_it(
    roots: list[tuple[int, int]], before: RowPlace, after: RowPlace | None, reason: str | None
) -> None:
    limits = {"pages": [{"page": uid, "depth": depth} for uid, depth in roots]}
    # A hard delete leaves the row out of what is read afterwards.
    assert await found(limits, delta(before, after), stock=[after] if after is not None else [], gone=before) == (
        {("pages", before.uid, reason)} if reason is not None else set()
    )


@pytest.mark.req("S-07", "S-51")
async def test_a_new_page_is_judged_alone_and_a_page_made_below_it_for_itself() -> None:
    made = page(900, 10), page(901, 900)
    new = [delta(None, row) for row in made]
    assert await found({"pages": [{"page": 10, "depth": 1}]}, *new, stock=made) == {("pages", 901, "outside_scope")}
    assert await found({"pages": [{"page": 10, "depth": 2}]}, *new, stock=made) == set()


@pytest.mark.req("S-08", "S-47", "S-51")
async def test_a_new_version_is_judged_as_the_live_row_it_is_one_of() -> None:
    draft = content(907, 10, version_of=7, workspace=1)
    assert await found(HALL, delta(None, DRAFT), stock=[DRAFT]) == set()
    # It is stored on a scoped page, and is a version of an element outside.
    assert await found(HALL, delta(None, draft), stock=[draft]) == {("tt_content", 907, "outside_scope")}


@pytest.mark.req("S-47", "S-51", "S-53")
async def test_a_version_that_was_there_is_judged_as_it_was_itself() -> None:
    german = replace(DRAFT, language=1)
    limits = {**HALL, "languages": [0]}
    assert await found(limits, delta(german, DRAFT), stock=[DRAFT]) == {("tt_content", 900, "language_not_allowed")}
    assert await found(limits, written(DRAFT), stock=[DRAFT]) == set()


@pytest.mark.req("S-46", "S-65")
@pytest.mark.parametrize("name", [900, 9])
async def test_a_deleted_version_is_named_by_its_own_uid_and_by_the_one_of_its_record(name: int) -> None:
    limits = {**HALL, "tables": ["pages"]}
    gone = deleted(DRAFT), deleted(page(10, 1))
    stock = [replace(DRAFT, deleted=True)]
    assert await found(limits, *gone, stock=stock) == set()
    named = await found(limits, *gone, stock=stock, named={("tt_content", name)})
    assert named == {("tt_content", 900, "table_not_allowed")}


@pytest.mark.req("S-39", "S-65")
async def test_only_translations_of_what_was_named_are_judged_by_their_language_when_deleted_along() -> None:
    english = {"pages": [{"page": 10, "depth": 2}], "languages": [0]}
    office = page(100, 10)
    # The page was named; what lies on it, translated or not, goes by its position.
    along = deleted(office), deleted(content(6, 100)), deleted(AMT)
    assert await found(english, *along, named={("pages", 100)}) == set()
    record = await found(english, *along[1:], named={("tt_content", 6)})
    assert record == {("tt_content", 61, "language_not_allowed")}


@pytest.mark.req("S-06", "S-65")
async def test_a_row_of_all_languages_is_no_translation_though_it_has_a_parent() -> None:
    odd = content(62, 100, -1, parent=6)
    limits = {"pages": [{"page": 100}], "languages": [0]}
    gone = deleted(content(6, 100)), deleted(odd)
    alone = await found(limits, *gone, stock=[odd], named={("tt_content", 6)})
    assert alone == {("tt_content", 62, "language_not_allowed")}
    # Nor is it one when its page is deleted: then it goes along with that, whatever its language.
    assert await found(limits, *gone, deleted(page(100, 10)), stock=[odd], named={("tt_content", 6)}) == set()


@pytest.mark.req("S-46", "S-48", "S-53", "S-65")
async def test_an_mm_row_is_judged_in_full_unless_it_went_along_with_one_of_its_ends() -> None:
    limits = {**HALL, "tables": ["pages"]}
    assert await found(HALL, relation(5, 1)) == set()
    assert await found(limits, relation(5, 1)) == {("sys_category", 1, "outside_scope")}
    assert await found(HALL, relation(5, -1)) == set()
    assert await found(limits, relation(5, -1)) == {("sys_category", 1, "outside_scope")}
    assert await found(HALL, relation(7, -1)) == {("sys_category", 1, "outside_scope")}
    branch = deleted(page(10, 1)), deleted(content(5, 10))
    assert await found(limits, *branch, relation(5, -1)) == set()
    # An end that may not be deleted takes nothing along, and what goes makes no room for what comes.
    assert ("sys_category", 1, "outside_scope") in await found(limits, branch[1], relation(5, -1))
    assert await found(limits, *branch, relation(5, 1)) == {("sys_category", 1, "outside_scope")}
    assert await found(HALL, relation(7, 0)) == set()
    # An end that does not exist is no end inside.
    assert await found(HALL, relation(4711, 1)) == {("sys_category", 1, "outside_scope")}
    unknown = replace(relation(5, 1), table="tx_unknown_mm")
    assert await found(HALL, unknown) == {("tx_unknown_mm", None, "outside_scope")}


@pytest.mark.req("S-53")
async def test_an_mm_row_is_inside_when_an_end_was_before_the_call() -> None:
    moved = content(9, 20)
    changes = delta(content(9, 10), moved), relation(9, -1)
    assert await found(HALL, *changes, stock=[moved]) == {("tt_content", 9, "outside_scope")}


#: What is deleted along -> with whom, under pages 10 with everything below; neither its table nor its language is listed.
BRANCH: dict[str, Any] = {"pages": [{"page": 10, "depth": 9}]}
ALONG = [
    ({"tables": ["tt_content"]}, reference(50, 10, 5), [content(5, 10)]),
    ({"tables": ["pages"]}, content(6, 100), [page(100, 10)]),
    ({"tables": ["pages"]}, content(61, 100, 1, parent=6), [page(31, 10, language=1, parent=100)]),
    ({"tables": ["pages"]}, content(61, 100, 1), [page(31, 10, language=1, parent=100)]),
    ({"languages": [0]}, content(6, 100, 1), [page(100, 10)]),
    ({"languages": [0]}, page(31, 10, language=1, parent=100), [page(10, 1)]),
    ({"tables": ["pages"]}, reference(51, 1000, 44), [page(100, 10), page(1000, 100), content(44, 1000)]),
    ({"languages": [0]}, reference(52, 10, 5, language=1), [content(5, 10)]),
    ({"languages": [0]}, reference(52, 10, 8, language=1, parent=50), [content(5, 10), reference(50, 10, 5)]),
    # Its owner is known by the uid of a version.
    ({"tables": ["tt_content"]}, reference(53, 10, 900), [content(9, 10)]),
]


@pytest.mark.req("S-65", "S-46", "S-51")
@pytest.mark.parametrize(("limits", "row", "ancestors"), ALONG)
@pytest.mark.parametrize("hard", [False, True])
async def test_a_row_is_deleted_along_only_with_an_ancestor_that_the_call_deleted(
    limits: dict[str, Any], row: RowPlace, ancestors: list[RowPlace], *, hard: bool
) -> None:
    scope = {**BRANCH, **limits}
    stock = [DRAFT, content(44, 1000), *ancestors, row]
    reason = "table_not_allowed" if "tables" in limits else "language_not_allowed"
    gone = [delta(one, None) if hard else deleted(one) for one in (row, *ancestors)]
    assert await found(scope, *gone, stock=stock) == set()
    assert await found(scope, *reversed(gone), stock=stock) == set()
    # Without them, with them changed but there, or gone before the call already, it is a deletion of its own.
    alone = {(row.table, row.uid, reason)}
    assert await found(scope, gone[0], stock=stock) == alone
    assert alone <= await found(scope, gone[0], *(written(one) for one in ancestors), stock=stock)
    late = [written(replace(one, deleted=True)) for one in ancestors]
    assert alone <= await found(scope, gone[0], *late, stock=stock)


@pytest.mark.req("S-65")
async def test_what_may_not_be_deleted_itself_takes_nothing_along() -> None:
    content_only = {**BRANCH, "tables": ["tt_content"]}
    page_and_all = deleted(page(100, 10)), deleted(reference(51, 100, 6)), deleted(CATEGORY_HERE)
    assert await found(content_only, *page_and_all, stock=[CATEGORY_HERE, reference(51, 100, 6)]) == {
        ("pages", 100, "table_not_allowed"),
        ("sys_file_reference", 51, "table_not_allowed"),
        ("sys_category", 9, "table_not_allowed"),
    }


@pytest.mark.req("S-65")
async def test_what_goes_along_has_to_lie_in_scope_all_the_same() -> None:
    shallow = {"pages": [{"page": 10, "depth": 1}], "tables": ["pages"]}
    gone = deleted(page(100, 10)), deleted(page(1000, 100)), deleted(content(44, 1000))
    assert await found(shallow, *gone, stock=[content(44, 1000)]) == {
        ("pages", 1000, "outside_scope"),
        ("tt_content", 44, "outside_scope"),
    }


@pytest.mark.req("S-65")
async def test_rows_that_belong_to_each_other_do_not_take_each_other_along() -> None:
    german = content(62, 10, 1, parent=63), content(63, 10, 1, parent=62)
    assert await found({**BRANCH, "languages": [0]}, *map(deleted, german), stock=german) == {
        ("tt_content", 62, "language_not_allowed"),
        ("tt_content", 63, "language_not_allowed"),
    }


@pytest.mark.req("S-65")
async def test_a_page_translation_takes_along_what_is_in_its_language_and_no_other_page_or_language() -> None:
    translation = page(31, 10, language=1, parent=100)
    rows = content(61, 100, 2), content(62, 10, 1), content(63, 100), page(1000, 100, language=1, parent=11)
    named = {**BRANCH, "records": ["pages:31"], "tables": ["pages"]}
    assert await found(named, deleted(translation), *map(deleted, rows[:3]), stock=rows[:3]) == {
        ("tt_content", uid, "table_not_allowed") for uid in (61, 62, 63)
    }


@pytest.mark.req("S-65", "S-46")
async def test_what_was_asked_for_and_may_not_go_takes_nothing_along() -> None:
    picture = reference(51, 10, 6)
    gone = deleted(page(100, 10)), deleted(content(6, 100)), deleted(picture)
    limits = {**BRANCH, "tables": ["pages"]}
    assert await found(limits, *gone, stock=[picture]) == set()
    assert await found(limits, *gone, stock=[picture], named={("tt_content", 6)}) == {
        ("tt_content", 6, "table_not_allowed"),
        ("sys_file_reference", 51, "table_not_allowed"),
    }


@pytest.mark.req("S-65")
@pytest.mark.timeout(10)
async def test_rows_that_name_each_other_are_gone_through_once() -> None:
    one, other = content(61, 100, 1, parent=62), content(62, 100, 1, parent=61)
    limits = {**BRANCH, "tables": ["pages"]}
    gone = deleted(page(100, 10)), deleted(one), deleted(other)
    assert await found(limits, *gone, stock=[one, other]) == set()


@pytest.mark.req("S-65")
async def test_a_translated_element_takes_along_nothing_of_a_page_that_has_its_uid() -> None:
    german, other = content(100, 10, 1, parent=5), reference(71, 100, 9, language=1)
    limits = {**BRANCH, "tables": ["tt_content"]}
    assert await found(limits, deleted(german), deleted(other), stock=[german, other]) == {
        ("sys_file_reference", 71, "table_not_allowed")
    }


@pytest.mark.req("S-39", "S-65")
async def test_a_translation_goes_along_with_its_record_only_in_a_listed_language() -> None:
    original, german = content(6, 100), AMT
    for hard in (False, True):
        gone = [delta(row, None) if hard else deleted(row) for row in (original, german)]
        assert await found({**BRANCH, "languages": [0, 1]}, *gone) == set()
        assert await found({**BRANCH, "languages": [0]}, *gone) == {("tt_content", 61, "language_not_allowed")}
    # A record of a list of tables takes its translation along as it takes its children.
    mixed = reference(50, 10, 5), reference(51, 10, 5, language=1, parent=50)
    limits = {**BRANCH, "tables": ["tt_content"], "languages": [0]}
    assert await found(limits, deleted(content(5, 10)), *map(deleted, mixed), stock=mixed) == set()


@pytest.mark.req("S-30", "S-51", "S-52")
@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (content(8, 10, 1, parent=5), content(8, 10, 1, parent=7), "outside_scope"),
        (content(8, 10, 1, parent=5), content(8, 10, 1, parent=9), None),
        (content(8, 10, 1, parent=5), content(8, 10, 1, parent=4711), "outside_scope"),
        (content(8, 10, 1, parent=5), content(8, 10, 1), None),
        (content(9, 10), content(9, 10, parent=7), "outside_scope"),
        # What was no translation is made one of the record it names, by its language.
        (content(9, 10, parent=7), content(9, 10, 1, parent=7), "outside_scope"),
        (content(9, 10, parent=5), content(9, 10, 1, parent=5), None),
        # As it was, or less: whatever it names, nothing changed.
        (content(8, 10, 1, parent=7), content(8, 10, 1, parent=7), None),
        (content(8, 10, 1, parent=7), content(8, 10, 0, parent=7), None),
        (content(9, 10, parent=7), content(9, 10, parent=7), None),
        # Deleted it has a parent outside no less.
        (content(8, 10, 1, parent=5), content(8, 10, 1, parent=7, deleted=True), "outside_scope"),
    ],
)
async def test_a_row_is_made_a_translation_only_of_a_record_inside(
    before: RowPlace, after: RowPlace, reason: str | None
) -> None:
    expected = {("tt_content", after.uid, reason)} if reason is not None else set()
    assert await found(HALL, delta(before, after), stock=[after]) == expected
    draft = replace(after, uid=901, version_of=after.uid, workspace=1)
    if not after.deleted:
        # A new version is compared with the live row.
        drafted = await found(HALL, delta(None, draft), stock=[before, draft])
        assert bool(drafted) == bool(expected)


@pytest.mark.req("S-07", "S-08", "S-53")
@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (page(10, 100), "outside_scope"),
        (page(10, 10), "outside_scope"),
        (page(100, 1000), "outside_scope"),
        # Below the translation of a page there is no tree either.
        (page(1000, 30), "outside_scope"),
        (page(1000, 10), None),
    ],
)
def test_a_page_is_put_below_pages_and_not_below_itself(after: RowPlace, reason: str | None) -> None:
    branch = AssignmentScopeChecker(EffectiveAssignmentScope.model_validate({"pages": [{"page": 10, "depth": 99}]}))
    places = Places(0, (*TOWN, after))
    assert branch.placement(after, places) == reason


@pytest.mark.req("S-32", "S-34", "S-51")
@pytest.mark.parametrize(
    ("owner", "parent", "reason"),
    [(8, 50, None), (7, 50, "outside_scope"), (8, 70, "outside_scope"), (8, 0, None), (7, 0, "outside_scope")],
)
async def test_a_new_translation_of_a_child_belongs_to_its_owner_and_to_its_original(
    owner: int, parent: int, reason: str | None
) -> None:
    made = reference(55, 10, owner, language=1, parent=parent)
    expected = {("sys_file_reference", 55, reason)} if reason is not None else set()
    assert await found(HALL, delta(None, made), stock=[made]) == expected


@pytest.mark.req("S-54")
def test_rows_made_and_removed_and_neighbours_that_were_renumbered_are_not_judged() -> None:
    passing = RowDelta("tt_content", 990, None, None, True, False)
    renumbered = replace(written(content(7, 20)), other_changed=False, sorting_changed=True)
    changed = written(content(5, 10))
    assert judged_deltas([passing, renumbered, changed], ()) == [changed]
    assert judged_deltas([passing, renumbered, changed], {("tt_content", 7)}) == [renumbered, changed]
    assert judged_deltas([passing], {("tt_content", 990)}) == []


@pytest.mark.req("S-55")
@pytest.mark.parametrize(("rows", "history", "reason"), [(2, 4, None), (3, 0, "rows"), (0, 5, "history_rows")])
async def test_a_call_that_reaches_a_limit_is_not_judgeable(rows: int, history: int, reason: str | None) -> None:
    scope = AssignmentScopeChecker(EffectiveAssignmentScope.model_validate(HALL))
    effect = AssignmentScopeEffect(scope, KnownTopology(TOWN), {}, 3, 5)
    deltas = [written(content(uid, 10)) for uid in range(200, 200 + rows)]
    if reason is None:
        assert await effect.violations(deltas, (), history) == []
    else:
        with pytest.raises(NotJudgeable, match=f"too_many_{reason}$"):
            await effect.violations(deltas, (), history)


@pytest.mark.req("S-51", "S-53")
def test_where_a_row_comes_from() -> None:
    before = Places(0, [content(9, 10)])
    assert Change("tt_content", 9, content(9, 10), content(9, 20)).origin(before) == content(9, 10)
    assert Change("tt_content", 900, None, DRAFT).origin(before) == content(9, 10)
    assert Change("tt_content", 900, DRAFT, DRAFT).origin(before) == DRAFT
    assert Change("tt_content", 33, None, content(33, 10)).origin(before) is None
    assert Change("tt_content", 33, None, None).origin(before) is None


@pytest.mark.req("S-53", "S-65")
def test_a_row_changes_its_place_when_it_is_new_or_lies_elsewhere_but_not_when_it_goes() -> None:
    before = Places(0, [content(9, 10)])
    assert Change("tt_content", 9, content(9, 10), content(9, 20)).changed_place(before)
    assert Change("tt_content", 33, None, content(33, 10)).changed_place(before)
    assert not Change("tt_content", 900, None, DRAFT).changed_place(before)
    assert not Change("tt_content", 9, content(9, 10), content(9, 10, 1)).changed_place(before)
    assert not Change("tt_content", 9, content(9, 10), None).changed_place(before)
