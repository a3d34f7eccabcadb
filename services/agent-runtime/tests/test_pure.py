"""Pure rules: digest, envelope, decisions, fitting, privacy, expectations (T-05, T-11, T-25, T-26, T-31, T-53)."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from agent_runtime.approvals.decisions import DecisionIncomplete, read_decisions
from agent_runtime.approvals.turns import (
    MAX_PREVIEW_CHARACTERS,
    MAX_PREVIEW_LINES,
    TurnCall,
    TurnState,
    bounded_lines,
    more_than_shown,
    stale_calls,
    turn_digest,
    without_stale_expectations,
)
from agent_runtime.loop.fitting import fitted
from agent_runtime.loop.texts import changed_before_failure, refused_writes, scope_words
from agent_runtime.models.port import Message, RequestedCall
from agent_runtime.runs.envelope import Envelope, StateCipher, StateKeyError, StateUnreadable
from agent_runtime.runs.models import NewState, stored_actor
from agent_runtime.runs.states import (
    CallInFlight,
    RunState,
    call_state,
    message_state,
    read_state,
    turn_state,
)
from agent_runtime.steps.privacy import CONTENT, filtered, strictest
from agent_runtime.tools.contracts import CopyCheck, Plan, ReadBack
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from remit_contracts.calls import CallOutcome, Cmdmap, Datamap, Expect, Read, RehearsedCall, ShownChange
from remit_contracts.changes import ChangeAction, ObservedChangeSet, RecordChange, RefusedWrite
from remit_contracts.records import RecordReference, WriteTarget
from remit_contracts.runs import (
    AffectedRecord,
    Decision,
    DecisionRequest,
    FieldPreview,
    PendingQuestion,
    RefusedByRule,
)
from remit_contracts.scope import AssignmentScope, EffectiveAssignmentScope
from remit_contracts.steps import StepKind

CIPHER = StateCipher([b"a" * 32])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
SHOWN = ShownChange(table="pages", action="updated", record="3", pid="1", language=0)
PLAN = Plan(
    operations=(
        Expect(table="pages", uid=3, hash="h"),
        Datamap(datamap={"pages": {"3": {"title": "x"}}}),
        Read(table="pages", uids=[3], fields=["uid", "title"]),
        Cmdmap(cmdmap={"pages": {"3": {"move": 4}}}),
    ),
    target=WriteTarget(table="pages", uid=3),
    lines=("a line",),
    structured=(FieldPreview(field="title", current="y", proposed="x"),),
    affected=AffectedRecord(table="pages", uid=3, fields=("title",)),
    language=1,
    read_back=(ReadBack(operation=2, table="pages", record="3", expected={"title": "x"}),),
    copy_check=CopyCheck(operation=3, table="pages", source=3, expected={"hidden": 1}),
    success="done {uid}",
    touches=(RecordReference(table="pages", uid=3),),
    deletes=True,
)
CALL = TurnCall(
    call_id="c1",
    tool="update_page_metadata",
    arguments={"uid": 3, "title": "x"},
    on_card=False,
    write=False,
    asks=True,
    plan=PLAN,
    refusal="no",
    lines=("a line",),
    preview_failed=True,
    preview_stale=True,
    structured=PLAN.structured,
    affected=PLAN.affected,
    language=1,
    refused_by_rule=RefusedByRule(rule="r", code="c", explanation="e"),
    rehearsal=RehearsedCall(key="c1", outcome=CallOutcome.COMMITTED, shown=(SHOWN,)),
    would_write_live=True,
)
TURN = TurnState(
    kind="input",
    calls=(CALL,),
    round=2,
    digest="d",
    rehearsal_id=uuid4(),
    question=PendingQuestion(call_id="c1", question="?", options=("a", "b")),
    decisions={"c1": Decision.APPROVE},
    decided_by=7,
    decided_by_relation="self",
    reason="skip",
    answer="a",
    done="so far",
)
FLIGHT = CallInFlight(
    call_id="c1",
    tool="t",
    arguments={"a": 1},
    store_call_id=uuid4(),
    body="{}",
    plan=PLAN,
    round=3,
    scope=EffectiveAssignmentScope.of(AssignmentScope.for_page(3, 1)),
    previous=(uuid4(),),
)
MESSAGE = Message(
    role="assistant",
    content="text",
    calls=(RequestedCall(call_id="c1", name="t", arguments={"x": [1, None]}, provider_id="p"),),
    call_id="c0",
    name="n",
    is_error=True,
    opaque={"kind": "response", "parts": [{"signature": "keep me"}]},
)


def sealed(*states: NewState) -> list[tuple[UUID, str, bytes]]:
    ids = [uuid4() for _ in states]
    return [
        (row_id, state.kind, CIPHER.seal(row_id, Envelope(state.kind, state.data)))
        for row_id, state in zip(ids, states, strict=True)
    ]


@pytest.mark.req("T-26")
def test_every_field_of_the_state_survives_storing() -> None:
    for value in (CALL, TURN, FLIGHT, MESSAGE, PLAN):
        missing = [name for name, field in type(value).model_fields.items() if getattr(value, name) == field.default]
        assert not missing, f"the example leaves {missing} of {type(value).__name__} at their defaults"
    state = read_state(CIPHER, sealed(message_state(MESSAGE), turn_state(TURN), call_state(FLIGHT)))
    assert state == RunState([MESSAGE], TURN, FLIGHT)


@pytest.mark.req("T-25")
@given(st.text(min_size=1), JSON)
def test_an_envelope_opens_only_for_its_row_and_key(kind: str, data: Any) -> None:
    row_id = uuid4()
    text = CIPHER.seal(row_id, Envelope(kind, data))
    assert CIPHER.open(row_id, text) == Envelope(kind, data)
    assert StateCipher([b"b" * 32, b"a" * 32]).open(row_id, text).data == data
    for cipher, other, damaged in (
        (CIPHER, uuid4(), text),
        (StateCipher([b"b" * 32]), row_id, text),
        (CIPHER, row_id, text[:-1]),
        (CIPHER, row_id, text[:-1] + bytes([text[-1] ^ 1])),
        (CIPHER, row_id, b""),
    ):
        with pytest.raises(StateUnreadable):
            cipher.open(other, damaged)


@pytest.mark.req("T-25")
def test_an_unknown_version_is_told_apart_from_damage() -> None:
    from agent_runtime.runs.envelope import read_envelope

    for text, reason in (
        ({"v": 2, "kind": "message", "data": 1}, "unknown_version"),
        ({"v": True, "kind": "message", "data": 1}, "unknown_version"),
        ({"kind": "message", "data": 1}, "unknown_version"),
        ({"v": 1, "data": 1}, "corrupt"),
        ([], "corrupt"),
    ):
        with pytest.raises(StateUnreadable) as refused:
            read_envelope(json.dumps(text).encode())
        assert refused.value.reason == reason
    for state in (NewState("message", {"role": "nobody"}), NewState("other", {})):
        with pytest.raises(StateUnreadable):
            read_state(CIPHER, sealed(state))
    for key in ("", "short", "!!"):
        with pytest.raises(StateKeyError):
            StateCipher.from_text(key)


@pytest.mark.req("T-31", "T-34")
@given(JSON, JSON, st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=3))
def test_the_digest_is_the_same_exactly_where_the_card_is(
    first: Any, second: Any, lines: list[str], others: list[str]
) -> None:
    one = TurnState(kind="approval", calls=(TurnCall(call_id="c1", tool="t", arguments=first, lines=tuple(lines)),))
    two = TurnState(kind="approval", calls=(TurnCall(call_id="c1", tool="t", arguments=second, lines=tuple(others)),))
    same = json.dumps([first, lines], sort_keys=True) == json.dumps([second, others], sort_keys=True)
    assert (turn_digest(one) == turn_digest(two)) is same
    assert stale_calls(one, two) == (frozenset() if same else frozenset({"c1"}))


@pytest.mark.req("T-31")
def test_uids_of_rehearsed_rows_do_not_make_a_card_stale() -> None:
    def turn(uid: int, shown: tuple[ShownChange, ...] = (SHOWN,)) -> TurnState:
        changes = ObservedChangeSet(changes=(RecordChange(table="pages", uid=uid, action=ChangeAction.CREATED),))
        rehearsal = RehearsedCall(key="c1", outcome=CallOutcome.COMMITTED, shown=shown, changes=changes)
        return TurnState(kind="approval", calls=(CALL.model_copy(update={"rehearsal": rehearsal}),))

    assert turn_digest(turn(100)) == turn_digest(turn(200))
    assert turn_digest(turn(100)) != turn_digest(turn(100, (SHOWN, SHOWN)))
    marked = turn(100)
    calls = (marked.calls[0].model_copy(update={"preview_stale": False}),)
    assert turn_digest(marked.model_copy(update={"calls": calls})) == turn_digest(marked)


@pytest.mark.req("T-34")
@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_more_than_shown_counts_like_a_multiset(shown: list[str], now: list[str]) -> None:
    def changes(names: list[str]) -> list[ShownChange]:
        return [SHOWN.model_copy(update={"record": name}) for name in names]

    expected = any(now.count(name) > shown.count(name) for name in now)
    assert more_than_shown(changes(shown), changes(now)) is expected


@pytest.mark.req("T-33")
def test_a_decision_is_whole_or_refused() -> None:
    calls = tuple(TurnCall(call_id=name, tool="t") for name in ("a", "b"))
    reading = TurnCall(call_id="r", tool="t", on_card=False)
    turn = TurnState(kind="approval", calls=(*calls, reading))
    short = DecisionRequest(turn_digest="d", decision=Decision.APPROVE)
    assert read_decisions(short, turn) == {"a": Decision.APPROVE, "b": Decision.APPROVE}
    with pytest.raises(DecisionIncomplete) as refused:
        read_decisions(DecisionRequest(turn_digest="d", decisions={"a": Decision.APPROVE, "r": Decision.DECLINE}), turn)
    assert (refused.value.missing, refused.value.unknown) == (["b"], ["r"])


def test_a_later_call_does_not_expect_what_an_earlier_one_changes() -> None:
    first = TurnCall(call_id="a", tool="t", plan=PLAN)
    second = TurnCall(call_id="b", tool="t", plan=PLAN)
    one, two = without_stale_expectations([first, second])
    assert one.plan is not None
    assert two.plan is not None
    assert [operation.op for operation in one.plan.operations] == ["expect", "datamap", "read", "cmdmap"]
    assert [operation.op for operation in two.plan.operations] == ["datamap", "read", "cmdmap"]
    assert two.plan.operations[two.plan.read_back[0].operation].op == "read"
    assert two.plan.copy_check is not None
    assert two.plan.operations[two.plan.copy_check.operation].op == "cmdmap"


@pytest.mark.req("T-05")
@given(st.lists(st.text(max_size=600), max_size=40))
def test_preview_lines_stay_within_their_limits(lines: list[str]) -> None:
    bounded = bounded_lines(lines)
    assert len(bounded) <= MAX_PREVIEW_LINES
    assert all(len(line) <= MAX_PREVIEW_CHARACTERS and "\n" not in line for line in bounded)
    assert len(lines) <= MAX_PREVIEW_LINES or bounded[-1].startswith("… and ")


MESSAGES = st.lists(
    st.sampled_from(["user", "assistant", "tool"]).flatmap(
        lambda role: st.text(max_size=400).map(lambda content: (role, content))
    ),
    max_size=12,
)


@pytest.mark.req("T-11")
@given(MESSAGES, st.integers(min_value=256, max_value=2000))
def test_what_is_sent_fits_and_parts_no_turn(drafts: list[tuple[str, str]], window: int) -> None:
    messages = [Message(role="system", content="head")]
    for role, content in drafts:
        messages.append(Message.model_validate({"role": role, "content": content}))
    fit = fitted(messages, [], window)
    if fit.messages is None:
        return
    assert fit.estimate <= fit.window
    assert fit.messages[0] == messages[0]
    kept = list(fit.messages)
    assert kept[1:] == messages[len(messages) - len(kept) + 1 :]
    assert len(kept) + fit.dropped == len(messages)
    if fit.dropped:
        assert kept[1].role == "user"


@pytest.mark.req("T-53")
@pytest.mark.parametrize("kind", sorted(CONTENT))
def test_each_level_strips_what_it_says(kind: str) -> None:
    secret = "mail me: a.person@example.org"
    payload: dict[str, Any] = {"toolName": "t", "isError": True, "outcome": "ok"}
    values: dict[str, Any] = {
        "messages": [{"role": "user", "content": secret}],
        "requestedCalls": [{"name": "t", "arguments": {"a": secret}}],
        "arguments": {"a": secret},
        "artifacts": [secret],
    }
    payload.update({key: values.get(key, secret) for key in CONTENT[kind]})
    metadata = filtered(kind, payload, "metadata")
    assert "example.org" not in str(metadata)
    assert not set(CONTENT[kind]) & set(metadata)
    assert metadata["contentRedacted"] is True
    redacted = filtered(kind, payload, "redacted")
    assert "example.org" not in str(redacted)
    assert set(payload) == set(redacted)
    assert filtered(kind, payload, "full") == payload
    for level in ("metadata", "redacted", "full"):
        kept = filtered(kind, payload, level)
        assert (kept["toolName"], kept["isError"], kept["outcome"]) == ("t", True, "ok")


@pytest.mark.req("T-53", "T-73", "C-08")
def test_change_lists_survive_every_level() -> None:
    changes = ObservedChangeSet(
        changes=(RecordChange(table="pages", uid=3, action=ChangeAction.UPDATED),),
        refused=(RefusedWrite(operation="update", table="pages", uid=4, reason="outside_scope"),),
    ).model_dump(mode="json", by_alias=True)
    for level in ("metadata", "redacted", "full", "unheard of"):
        for kind in (StepKind.TOOL_CHANGES, StepKind.TOOL_WRITE, StepKind.STATUS, StepKind.APPROVAL):
            assert filtered(kind, changes, level) == changes
    assert strictest("full", "metadata", "redacted") == "metadata"
    assert strictest("full", "unheard of") == "metadata"


@pytest.mark.req("C-11", "S-70")
def test_at_most_ten_identities_are_named() -> None:
    changes = [RecordChange(table="pages", uid=uid, action=ChangeAction.UPDATED) for uid in range(1, 15)]
    text = changed_before_failure(changes, 3)
    assert "pages:10 updated" in text
    assert "pages:11" not in text
    assert "7 more" in text
    refused = [RefusedWrite(operation="update", table="pages", uid=uid, reason="outside_scope") for uid in range(20)]
    assert "pages:10 (" not in refused_writes(refused, None)
    assert scope_words(EffectiveAssignmentScope.none()) == "nothing"
    assert "Seite 3 und 1 Ebenen darunter" in scope_words(FLIGHT.scope, "de")


@pytest.mark.req("S-10")
@pytest.mark.parametrize("text", ["null", "[]", "7", "broken", '{"workspaceId": -1}', '{"assignmentScope": 1}'])
def test_an_unreadable_actor_may_write_nothing(text: str) -> None:
    actor = stored_actor(text, 7)
    assert actor.user_uid == 7
    assert actor.assignment_scope is not None
    assert actor.assignment_scope.admits_nothing


def test_examples_are_models() -> None:
    assert all(isinstance(value, BaseModel) for value in (CALL, TURN, FLIGHT, MESSAGE))
