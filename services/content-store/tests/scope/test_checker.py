"""The rules of the scope over a known tree (S-03 to S-08). Pages: 1 > 10 > 100 > 1000, and 2 > 20."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.places import Places, RowPlace
from hypothesis import given
from hypothesis import strategies as st
from remit_contracts.records import RecordReference
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot, ScopeReason

TREE = {1: 0, 10: 1, 100: 10, 1000: 100, 2: 0, 20: 2}


def page(uid: int, pid: int, **values: Any) -> RowPlace:
    return RowPlace("pages", uid, pid, language=values.pop("language", 0), **values)


def content(uid: int, pid: int, language: int = 0, **values: Any) -> RowPlace:
    return RowPlace("tt_content", uid, pid, language=language, **values)


def places(*more: RowPlace, workspace: int = 0) -> Places:
    return Places(workspace, [*(page(uid, pid) for uid, pid in TREE.items()), *more])


def checker(
    *roots: tuple[int, int],
    records: tuple[tuple[str, int], ...] = (),
    tables: tuple[str, ...] | None = None,
    languages: tuple[int, ...] | None = None,
) -> AssignmentScopeChecker:
    return AssignmentScopeChecker(
        EffectiveAssignmentScope(
            pages=tuple(PageRoot(page=uid, depth=depth) for uid, depth in roots),
            records=tuple(RecordReference(table=table, uid=uid) for table, uid in records),
            tables=tables,
            languages=languages,
        )
    )


@pytest.mark.req("S-01", "S-04")
@pytest.mark.parametrize(("depth", "inside"), [(0, {10}), (1, {10, 100}), (2, {10, 100, 1000})])
def test_a_page_is_in_scope_within_the_depth_of_a_scoped_page_above(depth: int, inside: set[int]) -> None:
    scope, known = checker((10, depth)), places()
    assert {uid for uid in TREE if scope.page(uid, known)} == inside


@pytest.mark.req("S-03")
def test_a_row_lies_where_its_pid_says_and_a_page_is_itself() -> None:
    scope, known = checker((10, 0)), places()
    assert scope.membership(content(5, 10), known) is None
    assert scope.membership(content(5, 100), known) is ScopeReason.OUTSIDE_SCOPE
    assert scope.membership(page(10, 1), known) is None
    # The page below lies on a scoped page by its pid, but a page counts as itself.
    assert scope.membership(page(100, 10), known) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-03")
def test_a_page_translation_is_its_page() -> None:
    german = page(11, 1, language=1, parent=10)
    known = places(german)
    assert checker((10, 0)).membership(german, known) is None
    assert checker((1, 0)).membership(german, known) is ScopeReason.OUTSIDE_SCOPE
    assert checker((10, 0)).membership(content(5, 11), known) is None


@pytest.mark.req("S-03", "S-42")
def test_a_translation_of_a_translation_stands_for_no_page() -> None:
    known = places(page(11, 1, language=1, parent=10), odd := page(12, 1, language=2, parent=11))
    assert checker((10, 99), (1, 99)).membership(odd, known) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-03")
def test_a_scoped_record_its_translation_and_its_version_are_in_scope_wherever_they_lie() -> None:
    scope, known = checker(records=(("tt_content", 5),)), places(content(5, 20))
    assert scope.membership(content(5, 20), known) is None
    assert scope.membership(content(6, 20, language=1, parent=5), known) is None
    assert scope.membership(content(7, 20, version_of=5, workspace=3), known) is None
    assert scope.membership(content(8, 20), known) is ScopeReason.OUTSIDE_SCOPE
    # Free mode: no parent, so nothing says what it translates.
    assert scope.membership(content(9, 20, language=1), known) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-03", "S-08")
def test_a_parent_pointer_may_name_a_version_of_the_scoped_record() -> None:
    version = content(50, 20, version_of=5, workspace=3)
    known = places(content(5, 20), version, workspace=3)
    draft = content(60, 20, language=1, parent=50, version_of=6, workspace=3)
    assert checker(records=(("tt_content", 5),)).membership(draft, known) is None


@pytest.mark.req("S-03", "S-34")
def test_metadata_and_children_belong_to_their_owner() -> None:
    file, metadata = RowPlace("sys_file", 3, 0), RowPlace("sys_file_metadata", 4, 0, owners=(("sys_file", 3),))
    assert checker(records=(("sys_file", 3),)).membership(metadata, places(file)) is None
    assert checker((10, 9)).membership(metadata, places(file)) is ScopeReason.OUTSIDE_SCOPE
    reference = RowPlace("sys_file_reference", 6, 10, owners=(("tt_content", 5),))
    assert checker((10, 0)).membership(reference, places(content(5, 10))) is None
    assert checker((10, 0)).membership(reference, places(content(5, 20))) is ScopeReason.OUTSIDE_SCOPE
    assert checker((10, 0)).membership(reference, places()) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-34")
def test_every_pointer_of_a_child_counts_and_owners_in_a_circle_are_outside() -> None:
    two = RowPlace("child", 6, 10, owners=(("tt_content", 5), ("tt_content", 7)))
    assert checker((10, 0)).membership(two, places(content(5, 10), content(7, 10))) is None
    assert checker((10, 0)).membership(two, places(content(5, 10), content(7, 20))) is ScopeReason.OUTSIDE_SCOPE
    a = RowPlace("child", 1, 10, owners=(("child", 2),))
    b = RowPlace("child", 2, 10, owners=(("child", 1),))
    assert checker((10, 0)).membership(a, places(a, b)) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-05")
def test_nothing_at_the_root_is_in_scope_but_what_is_named() -> None:
    redirect = RowPlace("sys_redirect", 3, 0)
    scope = checker((1, 99), (2, 99))
    assert scope.membership(redirect, places()) is ScopeReason.OUTSIDE_SCOPE
    assert scope.placement(replace(redirect, uid=0), places()) is ScopeReason.OUTSIDE_SCOPE
    named = checker(records=(("sys_redirect", 3),))
    assert named.membership(redirect, places()) is None
    assert named.placement(replace(redirect, uid=0), places()) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-05")
def test_new_metadata_of_a_scoped_file_is_the_exception_at_the_root() -> None:
    file, metadata = RowPlace("sys_file", 3, 0), RowPlace("sys_file_metadata", 0, 0, owners=(("sys_file", 3),))
    scope = checker(records=(("sys_file", 3),))
    assert scope.placement(metadata, places(file), with_owner=True) is None
    other = replace(metadata, owners=(("sys_file", 9),))
    assert scope.placement(other, places(file, RowPlace("sys_file", 9, 0))) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-06", "S-46")
def test_table_and_language_lists_only_narrow() -> None:
    scope, known = checker((10, 0), tables=("tt_content",), languages=(0,)), places()
    assert scope.membership(content(5, 10), known) is None
    assert scope.membership(page(10, 1), known) is ScopeReason.TABLE_NOT_ALLOWED
    assert scope.membership(content(5, 10, language=1), known) is ScopeReason.LANGUAGE_NOT_ALLOWED
    assert scope.membership(content(5, 20), known) is ScopeReason.OUTSIDE_SCOPE
    assert scope.membership(RowPlace("tt_content", 5, 10, language=None), known) is None


@pytest.mark.req("S-06")
def test_all_languages_is_a_language_only_where_the_scope_lists_languages() -> None:
    everywhere = content(5, 10, language=-1)
    assert checker((10, 0)).membership(everywhere, places()) is None
    assert checker((10, 0), languages=(0, 1)).membership(everywhere, places()) is ScopeReason.LANGUAGE_NOT_ALLOWED
    assert checker((10, 0), languages=(0, -1)).membership(everywhere, places()) is None


@pytest.mark.req("S-07")
@pytest.mark.parametrize(
    ("depth", "under", "admitted"), [(1, 10, True), (1, 100, False), (2, 100, True), (0, 10, False)]
)
def test_a_page_put_under_a_page_lies_one_level_deeper(depth: int, under: int, admitted: bool) -> None:
    reason = checker((10, depth)).placement(page(0, under), places())
    assert (reason is None) is admitted


@pytest.mark.req("S-07", "S-35")
def test_the_height_of_a_subtree_counts_at_its_new_place() -> None:
    scope, known = checker((10, 2)), places()
    assert scope.placement(page(20, 10), known, height=1) is None
    assert scope.placement(page(20, 10), known, height=2) is ScopeReason.SUBTREE_OUTSIDE_SCOPE
    assert scope.placement(page(20, 2), known, height=0) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-07")
def test_a_scoped_page_moved_out_of_the_scope_does_not_take_its_scope_along() -> None:
    moved = page(10, 2)
    assert checker((10, 5)).placement(moved, places(moved)) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-32")
def test_a_new_translation_lies_beside_what_it_translates() -> None:
    scope, known = checker(records=(("tt_content", 5),)), places(content(5, 20), content(7, 20))
    assert scope.placement(content(0, 20, language=1, parent=5), known, with_owner=True) is None
    assert scope.placement(content(0, 10, language=1, parent=5), known, with_owner=True) is ScopeReason.OUTSIDE_SCOPE
    assert scope.placement(content(0, 20, language=1, parent=7), known, with_owner=True) is ScopeReason.OUTSIDE_SCOPE
    both = checker((10, 0), records=(("tt_content", 5),))
    # The hook asks for the origin's page exactly; afterwards a page in scope is as good.
    assert both.placement(content(0, 10, language=1, parent=5), known, with_owner=True) is ScopeReason.OUTSIDE_SCOPE
    assert both.placement(content(0, 10, language=1, parent=5), known) is None


@pytest.mark.req("S-32")
def test_a_new_page_translation_lies_under_the_parent_of_its_page() -> None:
    scope = checker((10, 0))
    assert scope.placement(page(0, 1, language=1, parent=10), places(), with_owner=True) is None
    assert scope.placement(page(0, 10, language=1, parent=10), places(), with_owner=True) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-02")
def test_none_admits_nothing() -> None:
    scope = AssignmentScopeChecker(EffectiveAssignmentScope.none())
    for row in (content(5, 10), page(10, 1), RowPlace("sys_file", 3, 0)):
        assert scope.membership(row, places()) is ScopeReason.OUTSIDE_SCOPE


@pytest.mark.req("S-08")
def test_pages_are_taken_where_the_workspace_of_the_run_has_them() -> None:
    version = page(21, 10, version_of=20, workspace=3, state=4)
    new = page(30, 10, workspace=3, state=1)
    scope = checker((10, 1))
    draft, live = places(version, new, workspace=3), places(version, new)
    assert scope.page(20, draft)
    assert not scope.page(20, live)
    assert scope.page(30, draft)
    assert scope.membership(content(5, 20), draft) is None


@pytest.mark.req("S-47")
def test_a_move_in_another_workspace_is_judged_at_the_live_position() -> None:
    version = content(6, 20, version_of=5, workspace=4, state=4)
    assert checker((10, 0)).membership(version, places(content(5, 10), version, workspace=3)) is None
    assert checker((20, 0)).membership(version, places(content(5, 10), version, workspace=3)) is not None


@given(st.dictionaries(st.integers(1, 8), st.integers(0, 8), max_size=8), st.integers(1, 8), st.integers(0, 4))
def test_any_tree_with_any_circle_is_walked_to_an_end(tree: dict[int, int], root: int, depth: int) -> None:
    known = Places(0, [page(uid, pid) for uid, pid in tree.items()])
    scope = checker((root, depth))
    for uid in range(1, 9):
        chain = known.chain(uid)
        assert len(chain) == len(set(chain))
        assert scope.page(uid, known) == (root in chain and chain.index(root) <= depth)
