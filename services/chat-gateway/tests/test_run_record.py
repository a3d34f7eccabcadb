from __future__ import annotations

import json
from uuid import UUID

import pytest
from chat_gateway.notes.render import notes_of
from chat_gateway.segments.activity import activity_of
from chat_gateway.segments.kept import kept_payload, storable
from chat_gateway.segments.nothing_saved import describes_change_as_done, nothing_saved
from chat_gateway.segments.opening import facts_of
from chat_gateway.segments.refused_calls import read_refused_calls
from chat_gateway.segments.repository import read_entry
from chat_gateway.segments.run_record import EntryFrame, build_entry, changes_available, run_uuids
from gateway_support.steps import Steps
from hypothesis import given
from hypothesis import strategies as st
from remit_contracts.conversations import RunRecordEntry
from remit_contracts.steps import Step

AFTER = UUID(int=5)


def built(steps: Steps, outcome: str = "completed") -> RunRecordEntry:
    facts, decision = facts_of(steps.all, suspended=False)
    readings = read_refused_calls(steps.all, facts)
    return build_entry(steps.all, readings, EntryFrame(AFTER, outcome, steps.run, 1, decision=decision))


@pytest.mark.req("R-002", "R-003", "R-013")
def test_an_entry_counts_tools_and_names_only_what_tools_named() -> None:
    steps = Steps()
    steps.llm()
    steps.tool("get_page_content", "c0")
    steps.tool("progress", "c8")
    steps.tool("ask_choice", "c9")
    steps.whole_write("update_page_metadata", "c1", "pages", 3)
    steps.tool("update_page_metadata", "c2", error=True)
    steps.changes("c1", [{"table": "tt_content", "uid": 77, "action": "created"}], omitted=4)
    entry = built(steps)
    assert [(tool.name, tool.calls, tool.failed) for tool in entry.tools] == [
        ("get_page_content", 1, 0),
        ("update_page_metadata", 2, 1),
    ]
    assert [(write.record, write.completeness) for write in entry.writes] == [("pages:3", "complete")]
    assert "77" not in entry.model_dump_json().replace(str(steps.run), "")
    assert entry.changed == 6
    assert (entry.after, entry.run, entry.segment) == (str(AFTER), steps.run, 1)


@pytest.mark.req("R-002")
def test_unknown_keys_survive_and_missing_ones_are_tolerated() -> None:
    old = read_entry({"outcome": "completed", "somethingNew": {"a": 1}})
    assert old is not None
    assert old.model_dump(mode="json")["somethingNew"] == {"a": 1}
    assert (old.run, old.tools, old.writes) == (None, (), ())
    assert read_entry("nonsense") is None


@pytest.mark.req("R-008")
def test_runs_of_a_conversation_are_distinct_and_oldest_first() -> None:
    one, two = UUID(int=1), UUID(int=2)
    entries = [RunRecordEntry(run=run) for run in (one, None, two, one)]
    assert run_uuids(entries) == [one, two]


@pytest.mark.req("R-005", "A-02", "A-18")
@pytest.mark.parametrize(("word", "kind"), [("approve", "approved"), ("decline", "denied")])
def test_a_decision_is_recorded_by_kind_and_never_by_person(word: str, kind: str) -> None:
    steps = Steps()
    steps.add("approval", {"decision": word, "decidedBy": 7, "name": "Erika Muster"})
    entry = built(steps)
    assert entry.decision == {"kind": kind}
    assert "Erika" not in json.dumps(kept_payload(steps.all[0]))


@pytest.mark.req("R-110", "A-10", "A-19")
def test_when_the_change_list_is_offered() -> None:
    only_read = Steps()
    only_read.tool("get_page_content", "c1")
    refused = Steps()
    refused.llm()
    refused.tool("update_page_metadata", "c1", error=True, refusal="policy")
    stopped = Steps()
    stopped.tool("update_page_metadata", "c1", error=True, refusal="policy")
    stopped.changes("c1", [], refused=[{"operation": "update", "table": "pages", "uid": 3, "reason": "outside_scope"}])
    failed = Steps()
    failed.tool("update_page_metadata", "c1", error=True)
    named = Steps()
    named.whole_write("update_page_metadata", "c1", "pages", 3)
    unnamed = Steps()
    unnamed.tool("clear_cache", "c1")
    unnamed.changes("c1", [{"table": "pages", "uid": 3, "action": "updated"}])
    offered = [changes_available([built(steps)]) for steps in (only_read, refused, stopped, failed, named, unnamed)]
    assert offered == [False, False, True, True, True, True]
    legacy = RunRecordEntry.model_validate({"writes": [{"record": "pages:3", "completeness": "complete"}]})
    assert changes_available([legacy])
    assert not changes_available([])


@pytest.mark.req("R-009")
@given(st.text(min_size=3, max_size=30).filter(lambda text: text.strip() != ""))
def test_no_argument_result_or_text_reaches_record_notes_or_activity(text: str) -> None:
    marker = f"MARK{text.encode().hex()}KRAM"
    steps = Steps()
    steps.add("llm", {"content": marker})
    steps.tool("update_page_metadata", "c1", arguments={"title": marker}, result=marker)
    steps.write("update_page_metadata", "c1", "pages", 3)
    steps.add("request", {"messages": [marker]})
    steps.add("approval", {"comment": marker, "decision": "approve"})
    stored = [step.model_copy(update={"payload": kept_payload(step)}) for step in steps.all]
    for read in (steps.all, stored):
        facts, decision = facts_of(read, suspended=False)
        readings = read_refused_calls(read, facts)
        entry = build_entry(read, readings, EntryFrame(AFTER, "completed", steps.run, 1, decision=decision))
        said = [entry.model_dump_json(), *(note.text for note in notes_of([entry]))]
        said += [line.model_dump_json() for line in activity_of(steps.run, readings, facts)]
        assert marker not in "".join(said)
    assert marker not in "".join(step.model_dump_json() for step in stored)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.req("R-071")
@given(
    st.sampled_from(["tool", "tool_write", "tool_changes", "approval", "status"]),
    st.dictionaries(st.text(max_size=12), json_values, max_size=5),
)
def test_no_payload_makes_a_reader_fail(kind: str, payload: dict[str, object]) -> None:
    steps = Steps()
    named = {"toolName": payload.get("a", "x"), "callId": "c1", **payload}
    steps.add(kind, named)
    built(steps)
    assert "\x00" not in json.dumps(kept_payload(steps.all[0]))


@given(json_values)
def test_storable_values_are_json_without_nul_and_surrogates(value: object) -> None:
    text = json.dumps(storable(value), allow_nan=False, ensure_ascii=False)
    assert "\x00" not in text.encode("utf-8").decode("utf-8")
    assert "\\u0000" not in text


@pytest.mark.req("R-037")
@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("I have updated the title of page 3.", True),
        ("The page has been moved.", True),
        ("Done. Anything else?", True),
        ("Ich habe den Titel geändert.", True),
        ("Die Seite wurde verschoben.", True),
        ("I could not update the title.", False),
        ("Nothing was changed.", False),
        ("I would suggest that the title is changed.", False),
        ("Es wurde nichts gespeichert.", False),
        ("Page 3 has two content elements.", False),
        ("Shall I change it?", False),
    ],
)
def test_which_answers_describe_a_change_as_done(text: str, claims: bool) -> None:
    assert describes_change_as_done(text) is claims


@pytest.mark.req("R-037")
def test_an_answer_is_flagged_only_without_a_successful_write_in_its_segment() -> None:
    claim = "I have updated the title."
    nothing, wrote, failed = Steps(), Steps(), Steps()
    wrote.whole_write("update_page_metadata", "c1", "pages", 3)
    failed.tool("update_page_metadata", "c1", error=True)
    failed.write("update_page_metadata", "c1", "pages", 3)

    def flagged(text: str, steps: list[Step]) -> bool:
        facts, _ = facts_of(steps, suspended=False)
        return nothing_saved(text, steps, read_refused_calls(steps, facts))

    assert flagged(claim, nothing.all)
    assert not flagged(claim, wrote.all)
    assert flagged(claim, failed.all)
    assert not flagged("The title is Old.", nothing.all)
