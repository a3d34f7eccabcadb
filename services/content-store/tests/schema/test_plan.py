from __future__ import annotations

import pytest
from content_store.schema.live import LiveColumn, LiveTable
from content_store.schema.plan import plan_drop, plan_table


def column(name: str, type_: str = "bigint", required: bool = True, default: str | None = "0") -> LiveColumn:
    return LiveColumn(name, type_, required, default)


def live(*columns: LiveColumn, indexes: dict[str, str] | None = None) -> LiveTable:
    return LiveTable("t", {c.name: c for c in columns}, indexes or {})


TEXT = column("a", "text", False, None)
SHORT = column("a", "character varying(20)", True, "''::character varying")
LONG = column("a", "character varying(30)", True, "''::character varying")


def test_a_missing_table_is_made() -> None:
    plan = plan_table(live(TEXT), None, ["CREATE TABLE t (a text)"])
    assert (plan.statements, plan.destructive) == (["CREATE TABLE t (a text)"], [])


def test_a_table_as_it_should_be_is_left_alone() -> None:
    same = live(TEXT, SHORT, indexes={"t_a_idx": "USING btree (a)"})
    assert plan_table(same, same, []).statements == []


def test_a_new_column_and_a_new_index_are_added() -> None:
    plan = plan_table(live(TEXT, column("b"), indexes={"t_b_idx": "USING btree (b)"}), live(TEXT), [])
    assert plan.statements == [
        'ALTER TABLE "public"."t" ADD COLUMN "b" bigint DEFAULT 0 NOT NULL',
        'CREATE INDEX "t_b_idx" ON "public"."t" USING btree (b)',
    ]
    assert plan.destructive == []


def test_an_index_that_changed_is_made_anew_and_one_of_somebody_else_is_kept() -> None:
    plan = plan_table(
        live(TEXT, indexes={"t_a_idx": "USING btree (a)"}),
        live(TEXT, indexes={"t_a_idx": "USING hash (a)", "t_old_idx": "USING btree (a)", "by_hand": "USING gin (a)"}),
        [],
    )
    assert plan.statements == [
        'DROP INDEX "public"."t_a_idx"',
        'DROP INDEX "public"."t_old_idx"',
        'CREATE INDEX "t_a_idx" ON "public"."t" USING btree (a)',
    ]
    assert plan.destructive == []


@pytest.mark.parametrize(
    ("before", "after", "destructive"),
    [
        (SHORT, LONG, False),
        (SHORT, column("a", "text", True, "''::text"), False),
        (LONG, SHORT, True),
        (column("a", "text", True, "''::text"), SHORT, True),
        (column("a"), column("a", "text", True, "''::text"), True),
        (column("a", "integer"), column("a"), False),
        (column("a"), column("a", default="5"), False),
        (column("a"), column("a", required=False), False),
        (column("a", required=False), column("a"), True),
    ],
)
def test_only_what_may_lose_values_is_destructive(before: LiveColumn, after: LiveColumn, destructive: bool) -> None:
    plan = plan_table(live(after), live(before), [])
    assert plan.statements
    assert bool(plan.destructive) == destructive


def test_dropping_is_destructive() -> None:
    plan = plan_table(live(TEXT), live(TEXT, column("b")), [])
    assert plan.statements == ['ALTER TABLE "public"."t" DROP COLUMN "b"']
    assert plan.destructive == ["t.b: the column and its values would be dropped"]
    assert plan_drop(live(TEXT)).destructive == ["t: the table and its rows would be dropped"]
