from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from chat_gateway.access.visibility import Visible
from chat_gateway.approvals.errors import DecisionIncompleteError
from chat_gateway.approvals.presenter import Known, blocked_reasons, present_card, scope_sentence
from chat_gateway.approvals.rehearsed import rehearsal_lines
from chat_gateway.approvals.schemas import ApprovalCard
from chat_gateway.approvals.service import decisions_per_call
from chat_gateway.settings import PACKAGE
from gateway_support.store import visible
from remit_contracts.calls import CallOutcome, RehearsedCall, ShownChange
from remit_contracts.changes import ChangeAction, ObservedChangeSet, RecordChange, RefusedWrite
from remit_contracts.runs import Decision, DecisionRequest, PendingCallView, PendingTurn, RefusedByRule
from service_kit.texts import Texts

TEXTS = Texts([PACKAGE])
TABLES = {"pages": "Page", "tt_content": "Content"}
KNOWN = Known(Visible(), TABLES, {0: "English", 1: "German"})
RULE = RefusedByRule(rule="draft_workspace", code="live_write", explanation="Never live.")


def words(text: str, **params: Any) -> str:
    return TEXTS.text(text, "en", **params)


def german(text: str, **params: Any) -> str:
    return TEXTS.text(text, "de", **params)


def call(name: str = "c1", **values: Any) -> PendingCallView:
    return PendingCallView(call_id=name, tool=values.pop("tool", "update_page_metadata"), **values)


def card(*calls: PendingCallView, **values: Any) -> ApprovalCard:
    turn = PendingTurn(turn_digest="d", kind="approval", calls=calls, **values)
    return present_card(turn, UUID(int=1), KNOWN, words)


@pytest.mark.req("R-121", "R-120")
def test_the_workspace_sentence_is_made_from_id_and_title_alone() -> None:
    preview = ("Workspace: something else entirely",)
    live, titled, withheld = card(
        call("a", preview_lines=preview), call("b", workspace_id=3, workspace_title="Draft"), call("c", workspace_id=4)
    ).calls
    assert live.workspace_sentence == "Writes to the live site."
    assert live.preview_lines == preview
    assert titled.workspace_sentence == "Writes to the workspace “Draft” (3)."
    assert withheld.workspace_sentence == "Writes to workspace 4; its title is not visible to you."


@pytest.mark.req("R-122")
def test_no_language_is_not_the_default_language() -> None:
    none, default, one, untitled, every = card(
        call("a"), call("b", language=0), call("c", language=1), call("d", language=2), call("e", language=-1)
    ).calls
    assert none.language_sentence is None
    assert default.language_sentence == "Target language: the default language (0)."
    assert (one.language_title, one.language_sentence) == ("German", "Target language: German (1).")
    assert (untitled.language_title, untitled.language_sentence) == (None, "Target language: 2.")
    assert (every.language_title, every.language_sentence) == (None, "Target language: all languages (-1).")


@pytest.mark.req("R-124", "R-125", "P-03")
def test_a_refused_call_is_marked_and_not_named_by_the_button() -> None:
    found = card(call("a"), call("b"), call("c", tool="move_page", refused_by_rule=RULE, preview_lines=("prose",)))
    refused = found.calls[2]
    assert refused.carried_out is False
    assert refused.preview_lines == ("Never live.",)
    assert "This call will not be carried out: a rule refuses it." in refused.notices
    assert found.approve_label == "Approve: Change the page's properties (2×)"
    assert (found.carried_out, found.refused) == (("a", "b"), ("c",))
    assert found.approve_blocked == ""


@pytest.mark.req("R-125")
def test_with_every_call_refused_there_is_no_approval() -> None:
    found = card(call("a", refused_by_rule=RULE), call("b", refused_by_rule=RULE))
    assert found.approve_label is None
    assert found.approve_blocked == "allRefused"
    assert found.approve_blocked_texts == ("Nothing can be approved: every call is refused by a rule.",)


@pytest.mark.req("R-129", "A-11")
def test_the_most_important_reason_comes_first_and_all_are_listed() -> None:
    turn = PendingTurn(
        turn_digest="d",
        kind="approval",
        calls=(call("a", refused_by_rule=RULE),),
        approve_blocked="preview",
        approve_blocked_reasons=("preview", "secondApprover", "later_reason"),
    )
    assert blocked_reasons(turn) == ("allRefused", "secondApprover", "preview", "later_reason")


@pytest.mark.req("R-127")
def test_a_required_draft_workspace_is_said_beside_a_call_that_would_write_live() -> None:
    sentence = "The configuration requires a draft workspace, and this call would write to the live site."
    live, draft, free = card(
        call("a", requires_draft_workspace=True, would_write_live=True),
        call("b", requires_draft_workspace=True),
        call("c", would_write_live=True),
    ).calls
    assert sentence in live.notices
    assert sentence not in draft.notices
    assert sentence not in free.notices


def rehearsed(**values: Any) -> RehearsedCall:
    return RehearsedCall(key="c1", outcome=values.pop("outcome", CallOutcome.COMMITTED), **values)


def seen(*records: Any) -> Visible:
    return Visible({(record.table, record.uid): record for record in records})


@pytest.mark.req("R-098")
def test_a_rehearsal_names_only_what_the_viewer_may_see() -> None:
    rehearsal = rehearsed(
        shown=(
            ShownChange(table="pages", action="updated", record="3", pid="1"),
            ShownChange(table="tt_content", action="created", record="NEW1", pid="3"),
            ShownChange(table="be_secret", action="created", record="NEW2", pid="3"),
            ShownChange(table="tt_content", action="updated", record="777", pid="3"),
        ),
        changes=ObservedChangeSet(
            changes=(RecordChange(table="pages", uid=3, action=ChangeAction.UPDATED, write_target=True),),
            refused=(
                RefusedWrite(operation="update", table="pages", uid=3, reason="outside_scope"),
                RefusedWrite(operation="update", table="pages", uid=888, reason="outside_scope"),
            ),
            changes_omitted=2,
        ),
    )
    lines = rehearsal_lines(rehearsal, seen(visible("pages", 3, "Home", table_label="Page")), TABLES, words)
    assert lines == (
        "Will change: “Home” (Page, pages:3)",
        "Along with it, created: new Content on page “Home” (3)",
        "2 further record(s) would change.",
        "2 further record(s) would change that you may not see.",
        "Would be refused: “Home” (Page, pages:3) (outside_scope)",
        "1 further write(s) would be refused on records you may not see.",
    )


def test_records_on_a_new_page_follow_the_page_it_is_made_on() -> None:
    rehearsal = rehearsed(
        shown=(
            ShownChange(table="pages", action="created", record="pages/NEW1", pid="3"),
            ShownChange(table="tt_content", action="created", record="tt_content/NEW2", pid="pages/NEW1"),
        ),
        changes=ObservedChangeSet(
            changes=(RecordChange(table="pages", uid=900, action=ChangeAction.CREATED, write_target=True),)
        ),
    )
    assert rehearsal_lines(rehearsal, seen(visible("pages", 3, "Home")), TABLES, words) == (
        "Will create: new Page on page “Home” (3)",
        "Along with it, created: new Content on a new page",
    )
    assert rehearsal_lines(rehearsal, Visible(), TABLES, words) == (
        "2 further record(s) would change that you may not see.",
    )


def test_a_rehearsal_that_was_not_possible_says_so() -> None:
    for rehearsal in (rehearsed(problem="locked"), rehearsed(outcome=CallOutcome.UNKNOWN)):
        assert rehearsal_lines(rehearsal, Visible(), TABLES, words) == (
            "It is not known what would change along with it.",
        )
    undone = rehearsed(outcome=CallOutcome.ROLLED_BACK)
    assert rehearsal_lines(undone, Visible(), TABLES, words) == ("The whole call would be undone.",)


@pytest.mark.req("R-095")
def test_a_card_that_cannot_be_checked_names_nothing() -> None:
    rehearsal = rehearsed(shown=(ShownChange(table="pages", action="updated", record="3", pid="1"),))
    (line,) = rehearsal_lines(rehearsal, None, {}, words)
    assert "could not be checked" in line


def test_the_card_speaks_german() -> None:
    turn = PendingTurn(
        turn_digest="d",
        kind="approval",
        calls=(call("a"), call("b", language=1, workspace_id=3, workspace_title="Entwurf"), call("c", workspace_id=4)),
    )
    found = present_card(turn, UUID(int=1), KNOWN, german)
    assert found.approve_label == "Freigeben: Eigenschaften der Seite ändern (3×)"
    live, draft, withheld = found.calls
    assert live.workspace_sentence == "Schreibt in die Live-Website."
    assert draft.workspace_sentence == "Schreibt in den Workspace „Entwurf“ (3)."
    assert withheld.workspace_sentence == "Schreibt in den Workspace 4; sein Titel ist für Sie nicht sichtbar."
    assert draft.language_sentence == "Zielsprache: German (1)."


def test_the_scope_is_said_from_its_data() -> None:
    summary = {"pages": [{"page": 4, "depth": 2}, {"page": 5, "depth": 0}], "records": ["pages:9"], "languages": [0, 1]}
    assert scope_sentence(summary, {1: "German"}, words) == (
        "This assignment may write: page 4 and 2 level(s) below it; page 5; record pages:9; only in the languages 0, German (1)."
    )
    assert scope_sentence({"pages": [], "records": []}, {}, words) == "This assignment may write nothing."
    assert scope_sentence(None, {}, words) is None
    assert scope_sentence({"pages": "nonsense"}, {}, words) is None


@pytest.mark.req("T-33")
def test_a_decision_covers_every_pending_call_once() -> None:
    turn = PendingTurn(turn_digest="d", kind="approval", calls=(call("a"), call("b")))
    short = DecisionRequest(turn_digest="d", decision=Decision.APPROVE)
    assert decisions_per_call(short, turn) == {"a": Decision.APPROVE, "b": Decision.APPROVE}
    each = DecisionRequest(turn_digest="d", decisions={"a": Decision.APPROVE, "b": Decision.DECLINE})
    assert decisions_per_call(each, turn) == {"a": Decision.APPROVE, "b": Decision.DECLINE}
    for decisions in (
        {"a": Decision.APPROVE},
        {"a": Decision.APPROVE, "b": Decision.APPROVE, "x": Decision.DECLINE},
        {},
    ):
        with pytest.raises(DecisionIncompleteError):
            decisions_per_call(DecisionRequest(turn_digest="d", decisions=decisions), turn)
    for nothing in (DecisionRequest(turn_digest="d"), short.model_copy(update={"decisions": {"a": Decision.APPROVE}})):
        with pytest.raises(DecisionIncompleteError):
            decisions_per_call(nothing, turn)
