"""Where the rules of the scope end: rows that are almost inside. Pure, over the tree of ``test_checker``."""

from __future__ import annotations

from typing import Any, cast

import pytest
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.commands import CommandCheck
from content_store.scope.places import Places, RowPlace
from remit_contracts.records import RecordReference
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot, ScopeReason

TREE = {1: 0, 10: 1, 100: 10, 2: 0, 20: 2}


def content(uid: int, pid: int, language: int = 0, **values: object) -> RowPlace:
    return RowPlace("tt_content", uid, pid, language=language, **values)  # type: ignore[arg-type]


def reference(uid: int, pid: int, *owners: int, table: str = "tt_content") -> RowPlace:
    return RowPlace("sys_file_reference", uid, pid, language=0, owners=tuple((table, owner) for owner in owners))


def places(*more: RowPlace) -> Places:
    return Places(0, [*(RowPlace("pages", uid, pid, language=0) for uid, pid in TREE.items()), *more])


def checker(*roots: tuple[int, int], records: tuple[int, ...] = (), **lists: object) -> AssignmentScopeChecker:
    return AssignmentScopeChecker(
        EffectiveAssignmentScope.model_validate(
            {
                "pages": [PageRoot(page=uid, depth=depth) for uid, depth in roots],
                "records": [RecordReference(table="tt_content", uid=uid) for uid in records],
                **lists,
            }
        )
    )


@pytest.mark.req("S-03", "S-32", "S-34")
def test_a_child_that_lies_neither_on_a_scoped_page_nor_where_its_owner_lies_is_outside() -> None:
    known = places(content(5, 10), astray := reference(50, 20, 5), beside := reference(51, 10, 5))
    scope = checker((10, 0))
    assert scope.membership(beside, known) is None
    assert scope.membership(astray, known) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-03", "S-34")
def test_a_child_on_another_scoped_page_than_its_owner_is_inside() -> None:
    known = places(content(5, 10), apart := reference(50, 20, 5))
    assert checker((10, 0), (20, 0)).membership(apart, known) is None


@pytest.mark.req("S-34")
def test_a_child_of_two_named_owners_may_lie_beside_either() -> None:
    known = places(content(5, 10), content(6, 20), child := reference(50, 10, 5, 6))
    scope = checker(records=(5, 6))
    assert scope.membership(child, known) is None
    assert scope.placement(child, known, with_owner=True) is None


@pytest.mark.req("S-03")
def test_only_a_translation_is_in_scope_with_the_record_it_points_at() -> None:
    known = places(content(5, 10), german := content(8, 20, 1, parent=5), odd := content(9, 20, 0, parent=5))
    scope = checker(records=(5,))
    assert scope.membership(german, known) is None
    assert scope.membership(odd, known) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-06", "S-31", "S-46")
def test_table_and_language_lists_hold_for_what_is_placed() -> None:
    scope, known = checker((10, 0), tables=["tt_content"], languages=[0]), places()
    assert scope.placement(content(0, 10), known) is None
    assert scope.placement(content(0, 10, 1), known) is ScopeReason.LANGUAGE_NOT_ALLOWED
    assert scope.placement(RowPlace("sys_category", 0, 10, language=0), known) is ScopeReason.TABLE_NOT_ALLOWED


@pytest.mark.req("S-07", "S-35")
def test_a_tall_page_that_does_not_fit_even_alone_is_outside_itself() -> None:
    scope, known = checker((10, 1)), places()
    page = RowPlace("pages", 0, 20, language=0)
    assert scope.placement(page, known, height=1) is ScopeReason.OUTSIDE_SCOPE
    assert scope.placement(RowPlace("pages", 0, 10, language=0), known, height=1) is ScopeReason.SUBTREE_OUTSIDE_SCOPE


@pytest.mark.req("S-32", "S-42")
def test_a_row_whose_owner_or_original_is_not_there_is_placed_nowhere() -> None:
    scope, known = checker((10, 0)), places()
    assert scope.placement(reference(0, 10, 4711), known) is ScopeReason.OUTSIDE_SCOPE
    assert scope.placement(content(0, 10, 1, parent=4711), known) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-32", "S-53")
def test_a_child_moved_to_a_page_outside_is_outside_though_its_owner_is_inside() -> None:
    known = places(content(5, 10))
    assert checker((10, 0)).placement(reference(50, 20, 5), known) is ScopeReason.OUTSIDE_SCOPE
    assert checker((10, 0), (20, 0)).placement(reference(50, 20, 5), known) is None


@pytest.mark.req("S-03", "S-32")
def test_a_page_translation_lies_beside_its_page_and_nowhere_else_in_scope() -> None:
    scope, known = checker((1, 9), (2, 9)), places()
    assert scope.placement(RowPlace("pages", 0, 10, language=1, parent=100), known) is None
    assert scope.placement(RowPlace("pages", 0, 1, language=1, parent=100), known) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-32", "S-34")
def test_a_child_of_a_page_lies_on_that_page_and_not_above_it() -> None:
    scope, known = checker((10, 0)), places()
    assert scope.placement(reference(0, 10, 10, table="pages"), known, with_owner=True) is None
    above = scope.placement(reference(0, 1, 10, table="pages"), known, with_owner=True)
    assert above is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-34")
def test_a_page_that_is_a_child_of_an_element_lies_where_the_element_lies() -> None:
    known = places(content(5, 10))
    owned = RowPlace("pages", 0, 10, language=0, owners=(("tt_content", 5),))
    assert checker((10, 0)).placement(owned, known, with_owner=True) is None


@pytest.mark.req("S-36", "S-39")
def test_a_subtree_is_inside_when_all_of_its_pages_are() -> None:
    scope, known = checker((10, 1)), places()
    assert scope.subtree([100], known) is None
    assert scope.subtree([], known) is None
    assert scope.subtree([100, 20], known) is ScopeReason.SUBTREE_OUTSIDE_SCOPE


@pytest.mark.req("S-35", "S-39")
def test_translations_that_go_along_have_to_be_of_listed_languages() -> None:
    scope = checker((10, 0), languages=[0, 1])
    assert scope.translations([content(8, 10, 1)]) is None
    assert scope.translations([content(8, 10, 1), content(9, 10, 2)]) is ScopeReason.LANGUAGE_NOT_ALLOWED


@pytest.mark.req("S-41")
async def test_a_command_nobody_knows_is_refused_before_anything_is_read() -> None:
    nothing = cast("Any", None)
    verdict = await CommandCheck(checker((1, 99)), nothing, lambda _name: None).judge("explode", "pages", 1, 1)
    assert verdict is not None
    assert verdict.reason is ScopeReason.SCOPE_UNRESOLVABLE
