"""The effect check on what real triggers recorded, whoever wrote it (S-51 to S-56, S-65, CALLS 3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from content_store.capture.grouping import group_rows
from content_store.capture.model import RowDelta
from content_store.capture.reader import take_capture
from content_store.records.gateway import RecordGateway
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.effect import AssignmentScopeEffect, NotJudgeable
from content_store.scope.topology import PageTopology
from remit_contracts.changes import RefusedWrite
from remit_contracts.records import RecordReference
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot
from store_support.calls import TestStore

Named = Collection[tuple[str, int]]


def scope(*roots: tuple[int, int], **values: object) -> EffectiveAssignmentScope:
    return EffectiveAssignmentScope.model_validate(
        {"pages": [PageRoot(page=uid, depth=depth) for uid, depth in roots], **values}
    )


class Written:
    """Runs plain SQL as the service would, judges it, and takes everything back."""

    def __init__(self, store: TestStore) -> None:
        self.store = store
        self.ends = store.env.relation_ends
        self.deltas: Sequence[RowDelta] = ()
        self.statements = 0

    async def violations(
        self, limits: EffectiveAssignmentScope, *sql: str, named: Named = (), max_rows: int = 5000, history: int = 0
    ) -> list[RefusedWrite]:
        connection = await self.store.applies.acquire()
        transaction = connection.transaction()
        await transaction.start()
        try:
            for statement in sql:
                await connection.execute(statement)
            gateway = RecordGateway(connection, self.store.env.schema)
            self.deltas = group_rows(await take_capture(connection, None))
            effect = AssignmentScopeEffect(AssignmentScopeChecker(limits), PageTopology(gateway), self.ends, max_rows)
            try:
                return await effect.violations(self.deltas, named, history)
            finally:
                self.statements = gateway.statements
        finally:
            await transaction.rollback()
            await self.store.applies.release(connection)


@pytest.fixture
def written(shared_store: TestStore) -> Written:
    return Written(shared_store)


def found(violations: list[RefusedWrite]) -> set[tuple[str, int | None, str]]:
    assert all(violation.undone and violation.operation == "effect" for violation in violations)
    return {(violation.table, violation.uid, violation.reason) for violation in violations}


HALL = scope((10, 0))


@pytest.mark.req("S-51", "S-53", "S-83")
async def test_a_plain_update_is_judged_where_the_row_lies(written: Written) -> None:
    assert await written.violations(HALL, "UPDATE tt_content SET header = 'x' WHERE uid = 5") == []
    outside = await written.violations(HALL, "UPDATE tt_content SET header = 'x' WHERE uid IN (5, 7)")
    assert found(outside) == {("tt_content", 7, "outside_scope")}


@pytest.mark.req("S-53")
async def test_a_row_moved_out_and_a_row_moved_in_are_both_outside(written: Written) -> None:
    away = await written.violations(HALL, "UPDATE tt_content SET pid = 20 WHERE uid = 5")
    assert found(away) == {("tt_content", 5, "outside_scope")}
    into = await written.violations(HALL, "UPDATE tt_content SET pid = 10 WHERE uid = 7")
    assert found(into) == {("tt_content", 7, "outside_scope")}


@pytest.mark.req("S-53")
async def test_a_hard_delete_and_a_cascade_are_judged_by_the_place_before(written: Written) -> None:
    assert await written.violations(HALL, "DELETE FROM tt_content WHERE uid = 9") == []
    gone = await written.violations(HALL, "DELETE FROM tt_content WHERE uid = 7")
    assert found(gone) == {("tt_content", 7, "outside_scope")}


@pytest.mark.req("S-53", "S-33", "S-34")
async def test_a_child_taken_over_by_a_parent_in_scope_is_judged_by_its_old_parent_too(written: Written) -> None:
    taken = await written.violations(HALL, "UPDATE sys_file_reference SET uid_foreign = 5, pid = 10 WHERE uid = 70")
    assert found(taken) == {("sys_file_reference", 70, "outside_scope")}
    pushed = await written.violations(HALL, "UPDATE sys_file_reference SET uid_foreign = 7 WHERE uid = 50")
    assert found(pushed) == {("sys_file_reference", 50, "outside_scope")}


@pytest.mark.req("S-85", "S-34")
async def test_a_child_made_under_a_parent_outside_is_found_even_on_a_page_inside(written: Written) -> None:
    made = await written.violations(
        HALL,
        "INSERT INTO sys_file_reference (pid, uid_local, uid_foreign, tablenames, fieldname) "
        "VALUES (10, 3, 7, 'tt_content', 'image')",
    )
    assert [violation.reason for violation in made] == ["outside_scope"]


@pytest.mark.req("S-54")
async def test_neighbours_that_are_only_renumbered_are_not_judged_unless_named(written: Written) -> None:
    renumber = "UPDATE tt_content SET sorting = sorting + 512, tstamp = 5 WHERE uid IN (5, 7)"
    assert await written.violations(HALL, renumber) == []
    named = await written.violations(HALL, renumber, named={("tt_content", 7)})
    assert found(named) == {("tt_content", 7, "outside_scope")}


@pytest.mark.req("S-65", "S-46")
async def test_table_and_language_lists_do_not_reach_what_is_deleted_along(written: Written) -> None:
    pages_only = scope((10, 2), tables=["pages"], languages=[0])
    delete = ("UPDATE pages SET deleted = 1 WHERE uid = 100", "UPDATE tt_content SET deleted = 1 WHERE uid = 6")
    assert await written.violations(pages_only, *delete, named={("pages", 100)}) == []
    # Named itself, the record is judged in full.
    named = await written.violations(pages_only, *delete, named={("pages", 100), ("tt_content", 6)})
    assert found(named) == {("tt_content", 6, "table_not_allowed")}
    # And an update is no deletion.
    updated = await written.violations(pages_only, "UPDATE tt_content SET header = 'x' WHERE uid = 6")
    assert found(updated) == {("tt_content", 6, "table_not_allowed")}


@pytest.mark.req("S-39", "S-65")
async def test_a_translation_deleted_along_with_its_named_record_is_judged_by_its_language(written: Written) -> None:
    delete = "UPDATE tt_content SET deleted = 1 WHERE uid IN (5, 8)"
    english = await written.violations(scope((10, 0), languages=[0]), delete, named={("tt_content", 5)})
    assert found(english) == {("tt_content", 8, "language_not_allowed")}
    assert await written.violations(HALL, delete, named={("tt_content", 5)}) == []


@pytest.mark.req("S-07", "S-35")
async def test_a_moved_page_is_judged_with_the_height_of_its_subtree(written: Written) -> None:
    move = "UPDATE pages SET pid = 11 WHERE uid = 100"
    assert await written.violations(scope((1, 3)), move) == []
    deep = await written.violations(scope((1, 2)), "UPDATE pages SET pid = 100 WHERE uid = 11")
    assert found(deep) == {("pages", 11, "outside_scope")}
    tall = await written.violations(scope((10, 2), (11, 1)), move)
    assert found(tall) == {("pages", 100, "subtree_outside_scope")}


@pytest.mark.req("S-36", "S-07")
async def test_a_new_page_below_the_last_level_is_found(written: Written) -> None:
    insert = "INSERT INTO pages (uid, pid, title) VALUES (900, {}, 'copy')"
    assert await written.violations(scope((10, 1)), insert.format(10)) == []
    deep = await written.violations(scope((10, 1)), insert.format(100))
    assert found(deep) == {("pages", 900, "outside_scope")}


@pytest.mark.req("S-53")
async def test_what_was_outside_before_the_tree_changed_is_outside(written: Written) -> None:
    # 1000 comes into the depth only because its parent is moved up by the same call.
    changed = await written.violations(
        scope((1, 2)),
        "UPDATE pages SET pid = 1 WHERE uid = 100",
        "UPDATE pages SET title = 'x' WHERE uid = 1000",
    )
    assert found(changed) == {("pages", 1000, "outside_scope")}


@pytest.mark.req("S-53", "S-48")
async def test_an_mm_row_is_inside_when_one_of_its_ends_is(written: Written) -> None:
    insert = (
        "INSERT INTO sys_category_record_mm (uid_local, uid_foreign, tablenames, fieldname) "
        "VALUES (1, {}, 'tt_content', 'categories')"
    )
    assert await written.violations(HALL, insert.format(5)) == []
    neither = await written.violations(HALL, insert.format(7))
    assert found(neither) == {("sys_category", 1, "outside_scope")}


@pytest.mark.req("S-03", "S-05")
async def test_file_metadata_follows_its_file(written: Written) -> None:
    insert = "INSERT INTO sys_file_metadata (pid, file, title, sys_language_uid) VALUES (0, {}, 'new', 1)"
    named = EffectiveAssignmentScope(records=(RecordReference(table="sys_file", uid=3),))
    assert (
        await written.violations(named, insert.format(3), "UPDATE sys_file_metadata SET title = 'x' WHERE uid = 3")
        == []
    )
    assert len(await written.violations(named, insert.format(4))) == 1
    assert len(await written.violations(scope((1, 9)), "UPDATE sys_redirect SET target = '/x' WHERE uid = 1")) == 1


@pytest.mark.req("S-53")
async def test_a_row_made_and_removed_again_is_nothing(written: Written) -> None:
    assert (
        await written.violations(
            HALL,
            "INSERT INTO tt_content (uid, pid, header) VALUES (990, 20, 'x')",
            "DELETE FROM tt_content WHERE uid = 990",
        )
        == []
    )


@pytest.mark.req("S-55")
@pytest.mark.parametrize(("rows", "judgeable"), [(4999, True), (5000, False)])
async def test_5000_rows_are_not_judgeable_and_4999_are(written: Written, rows: int, judgeable: bool) -> None:
    insert = f"INSERT INTO tt_content (pid, header) SELECT 10, 'x' FROM generate_series(1, {rows})"
    if judgeable:
        assert await written.violations(HALL, insert) == []
    else:
        with pytest.raises(NotJudgeable, match="too_many_rows"):
            await written.violations(HALL, insert)


@pytest.mark.req("S-55")
async def test_5000_history_rows_are_not_judgeable_and_4999_are(written: Written) -> None:
    sql = "UPDATE tt_content SET header = 'x' WHERE uid = 5"
    assert await written.violations(HALL, sql, history=4999) == []
    with pytest.raises(NotJudgeable, match="too_many_history_rows"):
        await written.violations(HALL, sql, history=5000)


@pytest.mark.req("S-50")
async def test_a_verdict_costs_at_most_three_statements(written: Written) -> None:
    await written.violations(
        scope((1, 9)),
        "UPDATE pages SET pid = 11 WHERE uid = 100",
        "UPDATE tt_content SET header = 'x' WHERE uid IN (5, 6, 8)",
        "UPDATE sys_file_reference SET title = 'x' WHERE uid = 50",
        "INSERT INTO sys_category_record_mm (uid_local, uid_foreign, tablenames, fieldname) VALUES (1, 5, 'tt_content', 'categories')",
    )
    assert written.statements <= 3


@pytest.mark.req("S-08", "S-53")
async def test_a_circle_of_pages_ends_the_walk_and_is_outside(written: Written) -> None:
    circle = await written.violations(
        scope((10, 9)),
        "UPDATE pages SET pid = 1000 WHERE uid = 100",
        "UPDATE tt_content SET header = 'x' WHERE uid = 6",
    )
    assert ("tt_content", 6, "outside_scope") in found(circle)


@pytest.mark.req("S-03", "S-51")
async def test_a_page_that_is_written_is_judged_as_itself(written: Written) -> None:
    assert await written.violations(HALL, "UPDATE pages SET title = 'x' WHERE uid = 10") == []
    below = await written.violations(HALL, "UPDATE pages SET title = 'x' WHERE uid IN (10, 100)")
    assert found(below) == {("pages", 100, "outside_scope")}


@pytest.mark.req("S-53", "S-65")
async def test_a_page_deleted_for_good_is_judged_where_it_lay(written: Written) -> None:
    gone = "DELETE FROM pages WHERE uid = 1000"
    assert await written.violations(scope((10, 2)), gone) == []
    assert found(await written.violations(scope((10, 1)), gone)) == {("pages", 1000, "outside_scope")}


@pytest.mark.req("S-48", "S-53")
async def test_an_mm_row_that_connects_nothing_known_is_outside(written: Written) -> None:
    written.ends = {}
    insert = (
        "INSERT INTO sys_category_record_mm (uid_local, uid_foreign, tablenames, fieldname) "
        "VALUES (1, 5, 'tt_content', 'categories')"
    )
    assert found(await written.violations(HALL, insert)) == {("sys_category_record_mm", None, "outside_scope")}


@pytest.mark.req("S-75")
async def test_a_violation_names_the_page_where_the_row_lies_or_lay(written: Written) -> None:
    away = await written.violations(HALL, "UPDATE tt_content SET pid = 20 WHERE uid = 5")
    gone = await written.violations(HALL, "DELETE FROM tt_content WHERE uid = 7")
    assert [violation.pid for violation in (*away, *gone)] == [20, 20]


@pytest.mark.req("S-51", "S-65")
async def test_a_row_made_and_softly_deleted_in_one_call_is_judged_as_placed(written: Written) -> None:
    made = "INSERT INTO tt_content (uid, pid, header) VALUES (4711, {}, 'x')"
    delete = "UPDATE tt_content SET deleted = 1 WHERE uid = 4711"
    assert await written.violations(HALL, made.format(10), delete) == []
    outside = await written.violations(HALL, made.format(20), delete)
    assert found(outside) == {("tt_content", 4711, "outside_scope")}


@pytest.mark.req("S-46", "S-65")
async def test_a_row_that_was_deleted_before_the_call_is_written_like_any_other(written: Written) -> None:
    await written.store.rows("UPDATE tt_content SET deleted = 1 WHERE uid = 9")
    try:
        late = await written.violations(
            scope((10, 0), tables=["pages"]), "UPDATE tt_content SET header = 'x' WHERE uid = 9"
        )
        assert found(late) == {("tt_content", 9, "table_not_allowed")}
    finally:
        await written.store.rows("UPDATE tt_content SET deleted = 0 WHERE uid = 9")


@pytest.mark.req("S-30", "S-53")
async def test_a_row_taken_out_of_a_language_outside_is_judged_by_the_language_it_had(written: Written) -> None:
    english = scope((10, 0), languages=[0])
    taken = await written.violations(
        english, "UPDATE tt_content SET sys_language_uid = 0, l18n_parent = 0 WHERE uid = 8"
    )
    assert found(taken) == {("tt_content", 8, "language_not_allowed")}
