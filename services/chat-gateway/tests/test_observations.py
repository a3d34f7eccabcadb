from __future__ import annotations

from uuid import UUID

import pytest
from chat_gateway.changes.merge import merge_observations
from chat_gateway.changes.observations import Observed, observe_entries, observe_run
from chat_gateway.segments.payloads import change_facts
from gateway_support.steps import Steps
from hypothesis import given
from hypothesis import strategies as st
from remit_contracts.changes import ChangeAction
from remit_contracts.conversations import RunRecordEntry


def observed(steps: Steps, position: int = 1) -> Observed:
    return observe_run(steps.run, position, steps.all)


@pytest.mark.req("R-070", "R-072", "A-05")
def test_a_version_and_its_live_row_are_one_record() -> None:
    steps = Steps()
    steps.tool("update_page_metadata", "c1")
    steps.changes("c1", [{"table": "pages", "uid": 3, "action": "updated", "workspaceId": 0}])
    steps.tool("update_page_metadata", "c2")
    steps.changes("c2", [{"table": "pages", "uid": 90, "liveUid": 3, "action": "updated", "workspaceId": 2}])
    rows = merge_observations(observed(steps).rows)
    assert list(rows) == [("pages", 3)]
    facts = rows["pages", 3].facts
    assert facts is not None
    assert (facts.uid, facts.workspace_id) == (90, 2)
    assert [call.call_id for call in rows["pages", 3].calls] == ["c1", "c2"]


@pytest.mark.req("R-074")
def test_a_failed_call_marks_every_row_of_its_list_and_no_other() -> None:
    steps = Steps()
    steps.tool("copy_record", "c1", error=True)
    steps.changes(
        "c1",
        [{"table": "pages", "uid": 3, "action": "created"}, {"table": "tt_content", "uid": 4, "action": "created"}],
    )
    steps.whole_write("update_page_metadata", "c2", "pages", 9)
    rows = merge_observations(observed(steps).rows)
    assert {key: row.failed for key, row in rows.items()} == {
        ("pages", 3): True, ("tt_content", 4): True, ("pages", 9): False,
    }  # fmt: skip


@pytest.mark.req("R-075", "A-08")
def test_a_hook_failure_marks_the_whole_call_and_partial_only_the_target() -> None:
    steps = Steps()
    steps.tool("copy_record", "c1")
    steps.add(
        "tool_write",
        {
            "toolName": "copy_record",
            "table": "pages",
            "uid": 3,
            "completeness": "partial",
            "hookFailedAfterWrite": True,
        },
        call="c1",
    )
    steps.changes(
        "c1",
        [{"table": "pages", "uid": 3, "action": "created"}, {"table": "tt_content", "uid": 4, "action": "created"}],
    )
    rows = merge_observations(observed(steps).rows)
    assert len(rows) == 2
    assert all(row.failed for row in rows.values())
    assert (rows["pages", 3].partial, rows["tt_content", 4].partial) == (True, False)


@pytest.mark.req("R-076", "A-25")
def test_without_a_call_id_the_nearest_tool_step_of_the_round_counts() -> None:
    steps = Steps()
    steps.llm()
    steps.tool("update_page_metadata", "c1", error=True)
    steps.add("tool_changes", {"changes": [{"table": "pages", "uid": 3, "action": "updated"}]})
    steps.llm()
    steps.add(
        "tool_changes", {"changes": [{"table": "pages", "uid": 4, "action": "updated"}], "coverage": "datahandler"}
    )
    found = observed(steps)
    rows = merge_observations(found.rows)
    assert rows["pages", 3].failed
    # Nothing says which call it belongs to: no failure marker, and the list says it is not sure.
    assert not rows["pages", 4].failed
    assert found.not_captured == 2


@pytest.mark.req("R-077")
def test_a_run_without_lists_is_read_through_the_records_its_tools_named() -> None:
    steps = Steps()
    steps.tool("update_page_metadata", "c1")
    steps.write("update_page_metadata", "c1", "pages", 3, "partial")
    found = observed(steps)
    (row,) = merge_observations(found.rows).values()
    assert (row.action, row.facts, row.target, row.partial, row.legacy) == (None, None, True, True, True)
    assert found.legacy_runs == 1
    # A run with one list is never read so.
    steps.changes("c1", [{"table": "tt_content", "uid": 4, "action": "created"}])
    again = observed(steps)
    assert list(merge_observations(again.rows)) == [("tt_content", 4)]
    assert again.legacy_runs == 0


@pytest.mark.req("R-078")
def test_entries_without_a_run_contribute_their_writes() -> None:
    old = RunRecordEntry.model_validate(
        {
            "writes": [
                {"record": "pages:3", "completeness": "partial"},
                {"record": "not a record", "completeness": "complete"},
            ]
        }
    )
    new = RunRecordEntry.model_validate(
        {"run": UUID(int=1), "writes": [{"record": "pages:9", "completeness": "complete"}]}
    )
    found = observe_entries([old, new])
    assert [(row.key, row.partial, row.legacy) for row in found.rows] == [(("pages", 3), True, True)]


@pytest.mark.req("R-071", "R-081")
def test_counts_of_what_is_left_out_not_captured_refused_and_undone() -> None:
    steps = Steps()
    steps.tool("copy_record", "c1")
    steps.changes("c1", [], omitted=7)
    steps.tool("copy_record", "c2")
    steps.add(
        "tool_changes",
        {"changes": ["nonsense", {"table": "pages", "uid": 5, "action": "moved"}], "coverage": "future"},
        call="c2",
    )
    steps.tool("delete_record", "c3", error=True)
    steps.changes(
        "c3",
        [],
        refused=[{"operation": "delete", "table": "pages", "uid": 8, "reason": "outside_scope", "undone": True}],
    )
    steps.add("unreadable")
    found = observed(steps)
    assert (found.omitted, found.not_captured, len(found.refused), found.undone_calls) == (7, 2, 1, 1)
    assert [row.key for row in found.rows] == [("pages", 5)]
    assert found.rows[0].action is ChangeAction.MOVED


@pytest.mark.req("R-071")
@given(
    st.dictionaries(
        st.sampled_from(["changes", "refused", "coverage", "changesOmitted", "x"]),
        st.none()
        | st.integers()
        | st.text()
        | st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4), max_size=3),
    )
)
def test_reading_a_list_never_fails(payload: dict[str, object]) -> None:
    steps = Steps()
    steps.add("tool_changes", payload, call="c1")
    observed(steps)
    change_facts(steps.all[0])
