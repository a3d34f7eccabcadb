"""The seven rows of R-042: typed and structural reading say the same, in activity list and run record."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from chat_gateway.segments.activity import activity_of
from chat_gateway.segments.opening import GivenDecision, facts_of
from chat_gateway.segments.refused_calls import Reading, read_refused_calls
from chat_gateway.segments.run_record import EntryFrame, build_entry
from gateway_support.steps import Steps

TOOL = "update_page_metadata"


@dataclass(frozen=True)
class Case:
    """A row of the table: one call, how it was refused, and what is read."""

    row: str
    opening: str
    kind: str
    ms: float
    reading: Reading
    code: str
    counted: tuple[int, int] | None
    tool: str = TOOL
    suspended: bool = False
    before_round: bool = True


CASES = [
    Case("1", "denied", "declined", 0.0, Reading.DECISION, "declined", None),
    Case("1 load_skill", "denied", "declined", 0.0, Reading.DECISION, "declined", None, tool="load_skill"),
    Case("2", "approved", "not_permitted", 0.0, Reading.NOT_PERMITTED, "not_permitted", (1, 1)),
    Case("3", "approved", "held", 0.0, Reading.HELD, "held", None, tool="ask_choice"),
    Case("4", "answered", "not_permitted", 0.0, Reading.NOT_PERMITTED, "not_permitted", None, tool="ask_choice"),
    Case("5", "answered", "held", 0.0, Reading.HELD, "held", None),
    Case("6", "start", "held", 0.0, Reading.HELD, "held", None, suspended=True, before_round=False),
    Case("7", "start", "policy", 3.5, Reading.FAILED, "failed", (1, 1), before_round=False),
    Case("7 opening", "approved", "policy", 3.5, Reading.FAILED, "failed", (1, 1)),
]


def segment(case: Case, *, typed: bool) -> Steps:
    steps = Steps()
    if case.opening == "answered":
        steps.add("input", {})
    elif case.opening != "start":
        steps.add("approval", {"decision": "approve" if case.opening == "approved" else "decline"})
    if not case.before_round:
        steps.llm()
    steps.tool(case.tool, "c1", error=True, ms=case.ms, refusal=case.kind if typed else None)
    if case.before_round:
        steps.llm()
    return steps


@pytest.mark.req("R-040", "R-041", "R-042", "R-047", "T-08")
@pytest.mark.parametrize("case", CASES, ids=[case.row for case in CASES])
@pytest.mark.parametrize("typed", [True, False], ids=["typed", "structural"])
def test_each_row_reads_the_same_from_type_and_from_structure(case: Case, typed: bool) -> None:
    steps = segment(case, typed=typed)
    facts, decision = facts_of(steps.all, suspended=case.suspended)
    readings = read_refused_calls(steps.all, facts)
    assert [item.reading for item in readings] == [case.reading]
    lines = activity_of(steps.run, readings, facts)
    assert [line.code for line in lines] == [case.code]
    if case.reading is Reading.DECISION:
        assert lines[0].tool is None
    entry = build_entry(steps.all, readings, EntryFrame(None, "completed", steps.run, 1, decision=decision))
    found = [(tool.calls, tool.failed) for tool in entry.tools]
    assert found == ([case.counted] if case.counted is not None else [])


@pytest.mark.req("R-042")
@pytest.mark.parametrize(("reason", "code"), [("skip", "skipped"), ("variant", "variant"), (None, "declined")])
def test_a_declined_card_is_one_line_that_names_the_answer(reason: str | None, code: str) -> None:
    steps = Steps()
    steps.add("approval", {"decision": "decline", "reason": reason})
    steps.tool(TOOL, "c1", error=True, ms=0.0)
    steps.tool(TOOL, "c2", error=True, ms=0.0)
    steps.llm()
    facts, _ = facts_of(steps.all, suspended=False)
    lines = activity_of(steps.run, read_refused_calls(steps.all, facts), facts)
    assert [line.code for line in lines] == [code]


@pytest.mark.req("R-042", "T-14")
@pytest.mark.parametrize("typed", [True, False], ids=["typed", "structural"])
def test_a_decision_per_call_names_each_call(typed: bool) -> None:
    steps = Steps()
    steps.add("approval", {"decisions": {"c1": "approve", "c2": "decline"}})
    steps.tool(TOOL, "c1")
    steps.tool("move_page", "c2", error=True, ms=0.0, refusal="declined" if typed else None)
    steps.llm()
    facts, decision = facts_of(steps.all, suspended=False)
    readings = read_refused_calls(steps.all, facts)
    assert [item.reading for item in readings] == [Reading.RAN, Reading.DECISION]
    assert [(line.call_id, line.code) for line in activity_of(steps.run, readings, facts)] == [
        ("c1", "done"),
        ("c2", "declined"),
    ]
    assert decision is not None
    assert decision.kind == "mixed"


@pytest.mark.req("R-043")
def test_an_unmeasured_error_outside_of_the_places_is_a_visible_failure() -> None:
    steps = Steps()
    steps.llm()
    steps.tool(TOOL, "c1", error=True, ms=0.0)
    steps.llm()
    facts, _ = facts_of(steps.all, suspended=False)
    assert [item.reading for item in read_refused_calls(steps.all, facts)] == [Reading.FAILED]
    # The same step in a round that suspended was held back.
    suspended, _ = facts_of(steps.all[:2], suspended=True)
    assert [item.reading for item in read_refused_calls(steps.all[:2], suspended)] == [Reading.HELD]


@pytest.mark.req("R-044")
def test_after_an_answer_a_tool_switched_off_reads_as_held_only_without_its_type() -> None:
    for refusal, reading in (("not_permitted", Reading.NOT_PERMITTED), (None, Reading.HELD)):
        steps = Steps()
        steps.add("input", {})
        steps.tool(TOOL, "c1", error=True, ms=0.0, refusal=refusal)
        facts, _ = facts_of(steps.all, suspended=False)
        assert [item.reading for item in read_refused_calls(steps.all, facts)] == [reading]


@pytest.mark.req("R-045")
def test_a_foreign_question_tool_is_any_tool_until_it_is_configured() -> None:
    steps = Steps()
    steps.add("approval", {"decision": "approve"})
    steps.tool("ask_colleague", "c1", error=True, ms=0.0)
    facts, _ = facts_of(steps.all, suspended=False)
    assert read_refused_calls(steps.all, facts)[0].reading is Reading.NOT_PERMITTED
    assert read_refused_calls(steps.all, facts, {"ask_colleague"})[0].reading is Reading.HELD


@pytest.mark.req("A-13")
def test_a_question_in_a_guided_process_is_an_ordinary_step() -> None:
    steps = Steps()
    steps.add("approval", {"decision": "approve"})
    steps.tool("ask_choice", "c1", error=True, ms=0.0)
    facts, _ = facts_of(steps.all, suspended=False, guided=True)
    assert read_refused_calls(steps.all, facts)[0].reading is Reading.FAILED


def test_without_a_step_that_says_so_the_passed_on_decision_counts() -> None:
    steps = Steps()
    steps.tool(TOOL, "c1", error=True, ms=0.0)
    steps.llm()
    given = GivenDecision.from_stored(GivenDecision.of_calls({"c1": "decline"}, "skip").stored())
    facts, decision = facts_of(steps.all, suspended=False, given=given)
    assert read_refused_calls(steps.all, facts)[0].reading is Reading.DECISION
    assert decision is not None
    assert decision.for_record() == {"kind": "denied", "reason": "skip"}
    plain, none = facts_of(steps.all, suspended=False)
    assert none is None
    assert read_refused_calls(steps.all, plain)[0].reading is Reading.FAILED
