from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from uuid import UUID

import pytest
from chat_gateway.approvals.errors import unanswered
from chat_gateway.clients.store import titles_of_sites
from gateway_support.runtime import BrokenError, FakeRun
from gateway_support.stack import Stack
from remit_contracts.runs import PendingCallView, PendingQuestion, PendingTurn, RefusedByRule, RunStatus
from service_kit.client import RemoteError, RemoteProblem, RemoteUnavailable

StartStack = Callable[..., AbstractAsyncContextManager[Stack]]


def card(digest: str, *calls: PendingCallView, **values: object) -> PendingTurn:
    shown = calls or (PendingCallView(call_id="c1", tool="move_page"),)
    return PendingTurn.model_validate({"turn_digest": digest, "kind": "approval", "calls": shown, **values})


async def waiting(stack: Stack, turn: PendingTurn) -> tuple[str, UUID, FakeRun]:
    conversation = await stack.conversation()
    run_id, run = await stack.say(conversation)
    await stack.wait_with(run_id, turn)
    return f"/conversations/{conversation}", run_id, run


@pytest.mark.req("R-128")
async def test_a_decision_about_another_card_brings_the_fresh_one_and_is_not_passed_on(stack: Stack) -> None:
    path, _, _ = await waiting(stack, card("d2"))
    answer = await stack.request("POST", f"{path}/decision", {"turnDigest": "d1", "decision": "approve"})
    assert (answer.status_code, answer.json()["code"]) == (409, "turn_stale")
    assert answer.json()["pendingApproval"]["turnDigest"] == "d2"
    assert stack.runtime.calls["decision"] == 0


@pytest.mark.req("R-128", "T-34")
async def test_a_card_that_changed_in_the_runtime_comes_back_and_is_shown_from_then_on(stack: Stack) -> None:
    path, _, run = await waiting(stack, card("d1"))
    run.pending = card("d2", PendingCallView(call_id="c1", tool="move_page", preview_stale=True))
    answer = await stack.request("POST", f"{path}/decision", {"turnDigest": "d1", "decision": "approve"})
    assert (answer.status_code, answer.json()["code"]) == (409, "turn_stale")
    fresh = answer.json()["pendingApproval"]
    assert fresh["turnDigest"] == "d2"
    assert "has changed since the card was shown" in fresh["calls"][0]["notices"][0]
    poll = (await stack.request("GET", f"{path}/messages")).json()
    assert poll["pendingApproval"]["turnDigest"] == "d2"
    assert poll["conversation"]["status"] == "waiting_for_approval"
    assert (
        await stack.request("POST", f"{path}/decision", {"turnDigest": "d2", "decision": "approve"})
    ).status_code == 202
    assert len(stack.runtime.decisions) == 1


@pytest.mark.req("R-128", "T-39")
async def test_deciding_twice_is_refused_the_second_time(stack: Stack) -> None:
    path, _, _ = await waiting(stack, card("d1"))
    body = {"turnDigest": "d1", "decision": "approve"}
    assert (await stack.request("POST", f"{path}/decision", body)).status_code == 202
    second = await stack.request("POST", f"{path}/decision", body)
    assert (second.status_code, second.json()["code"]) == (409, "run_not_waiting")
    assert len(stack.runtime.decisions) == 1


async def test_a_run_decided_elsewhere_says_so(stack: Stack) -> None:
    path, _, run = await waiting(stack, card("d1"))
    run.pending, run.status = None, RunStatus.COMPLETED
    answer = await stack.request("POST", f"{path}/decision", {"turnDigest": "d1", "decision": "approve"})
    assert (answer.status_code, answer.json()["code"]) == (409, "run_not_waiting")
    assert answer.json()["runStatus"] == "completed"


@pytest.mark.req("R-125", "R-129", "R-130")
async def test_a_blocked_card_can_be_declined_but_not_approved(stack: Stack) -> None:
    rule = RefusedByRule(rule="draft_workspace", code="x", explanation="No.")
    call = PendingCallView(call_id="c1", tool="move_page", refused_by_rule=rule)
    path, _, _ = await waiting(stack, card("d1", call))
    answer = await stack.request("POST", f"{path}/decision", {"turnDigest": "d1", "decision": "approve"})
    assert (answer.status_code, answer.json()["code"]) == (409, "approve_blocked")
    assert answer.json()["approveBlocked"] == "allRefused"
    assert stack.runtime.calls["decision"] == 0
    declined = await stack.request("POST", f"{path}/decision", {"turnDigest": "d1", "decision": "decline"})
    assert declined.status_code == 202


@pytest.mark.req("T-33")
@pytest.mark.parametrize("decisions", [{}, {"c1": "approve"}, {"c1": "approve", "c2": "decline", "c3": "approve"}])
async def test_a_decision_that_does_not_cover_the_card_is_refused(stack: Stack, decisions: dict[str, str]) -> None:
    calls = (PendingCallView(call_id="c1", tool="move_page"), PendingCallView(call_id="c2", tool="move_page"))
    path, _, _ = await waiting(stack, card("d1", *calls))
    answer = await stack.request("POST", f"{path}/decision", {"turnDigest": "d1", "decisions": decisions})
    assert (answer.status_code, answer.json()["code"]) == (422, "decision_incomplete")
    assert stack.runtime.calls["decision"] == 0


async def test_a_runtime_that_fails_leaves_the_card(stack: Stack) -> None:
    path, _, _ = await waiting(stack, card("d1"))
    stack.runtime.refuse["decision"] = BrokenError()
    answer = await stack.request("POST", f"{path}/decision", {"turnDigest": "d1", "decision": "approve"})
    assert (answer.status_code, answer.json()["code"]) == (503, "decision_unknown")
    assert (await stack.request("GET", f"{path}/messages")).json()["pendingApproval"]["turnDigest"] == "d1"


@pytest.mark.req("R-128", "T-39")
@pytest.mark.parametrize("moment", ["before decision", "after decision"])
async def test_a_decision_that_is_answered_too_late_is_called_unknown_and_may_be_sent_again(
    start_stack: StartStack, moment: str
) -> None:
    async with start_stack(decision_timeout=0.3) as stack:
        path, run_id, run = await waiting(stack, card("d1"))
        go_on = stack.runtime.late[moment] = asyncio.Event()
        body = {"turnDigest": "d1", "decision": "approve"}
        try:
            answer = await stack.request("POST", f"{path}/decision", body, headers={"Accept-Language": "de"})
            assert (answer.status_code, answer.json()["code"]) == (503, "decision_unknown")
            assert answer.json()["detail"].startswith("Sehen Sie im Gespräch nach")
            # Nothing is claimed meanwhile: the card stays until the run's own steps say what became of it.
            assert (await stack.messages(UUID(path.rsplit("/", 1)[1])))["pendingApproval"]["turnDigest"] == "d1"
        finally:
            go_on.set()
        async with asyncio.timeout(10):
            await stack.runtime.decided.wait()
        again = await stack.request("POST", f"{path}/decision", body)
        assert (again.status_code, again.json()["code"]) == (409, "run_not_waiting")
        assert again.json()["runStatus"] == "running"
        assert len(stack.runtime.decisions) == 1
        run.steps.next_segment()
        await stack.finish(run_id)
        poll = await stack.messages(UUID(path.rsplit("/", 1)[1]))
        assert (poll["conversation"]["status"], poll["pendingApproval"]) == ("completed", None)


async def test_a_decision_that_came_through_unanswered_is_still_what_the_record_says(start_stack: StartStack) -> None:
    async with start_stack(decision_timeout=0.3) as stack:
        path, run_id, run = await waiting(stack, card("d1"))
        go_on = stack.runtime.late["after decision"] = asyncio.Event()
        try:
            await stack.request("POST", f"{path}/decision", {"turnDigest": "d1", "decision": "decline"})
        finally:
            go_on.set()
        other = await stack.request("POST", f"{path}/decision", {"turnDigest": "d1", "decision": "approve"})
        assert (other.status_code, other.json()["code"]) == (409, "run_not_waiting")
        run.steps.next_segment()
        run.steps.tool("move_page", "c1", error=True, ms=0.0)
        run.steps.llm()
        await stack.finish(run_id)
        poll = (await stack.request("GET", f"{path}/messages")).json()
        assert [line["code"] for line in poll["activity"]] == ["declined"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RemoteUnavailable("agent-runtime", "ConnectError", sent=False), "service_unavailable"),
        (RemoteUnavailable("agent-runtime", "ReadTimeout", sent=True), "decision_unknown"),
        (RemoteProblem("agent-runtime", "internal_error", 500, {}, {}), "decision_unknown"),
        (RemoteProblem("agent-runtime", "run_not_found", 404, {}, {}), "run_not_found"),
        (TimeoutError(), "decision_unknown"),
    ],
)
def test_only_a_decision_that_left_is_in_doubt(error: RemoteError | TimeoutError, code: str) -> None:
    assert unanswered(error).code == code


async def test_a_question_takes_an_answer_and_no_decision(stack: Stack) -> None:
    question = PendingQuestion(call_id="c1", question="Which page?", options=("Home", "News"))
    turn = PendingTurn(turn_digest="q1", kind="input", question=question)
    path, run_id, run = await waiting(stack, turn)
    shown = (await stack.request("GET", f"{path}/messages")).json()["pendingApproval"]
    assert (shown["kind"], shown["question"]["options"]) == ("input", ["Home", "News"])
    wrong = await stack.request("POST", f"{path}/decision", {"turnDigest": "q1", "decision": "approve"})
    assert (wrong.status_code, wrong.json()["code"]) == (409, "kind_mismatch")
    answer = await stack.request("POST", f"{path}/answer", {"turnDigest": "q1", "answer": "Home"})
    assert answer.status_code == 202
    assert [(item[0], item[1].answer) for item in stack.runtime.answers] == [(run_id, "Home")]
    run.steps.next_segment()
    run.steps.tool("move_page", "c9", error=True, ms=0.0)
    run.steps.llm()
    await stack.finish(run_id)
    poll = (await stack.request("GET", f"{path}/messages")).json()
    # The runtime's steps hold no input step here: what the chat passed on says how the segment opened.
    assert [(line["tool"], line["code"]) for line in poll["activity"]] == [("move_page", "held")]


@pytest.mark.req("R-005", "R-042", "R-004")
async def test_a_declined_card_is_one_line_and_no_failed_tool(stack: Stack) -> None:
    path, run_id, run = await waiting(stack, card("d1"))
    body = {"turnDigest": "d1", "decision": "decline", "reason": "skip"}
    assert (await stack.request("POST", f"{path}/decision", body)).status_code == 202
    run.steps.next_segment()
    run.steps.tool("move_page", "c1", error=True, ms=0.0)
    run.steps.llm()
    await stack.finish(run_id, "As you wish.")
    poll = (await stack.request("GET", f"{path}/messages")).json()
    assert [(line["tool"], line["code"]) for line in poll["activity"]] == [(None, "skipped")]
    assert poll["changesAvailable"] is False
    _, again = await stack.say(UUID(path.rsplit("/", 1)[1]), "What happened?")
    told = "\n".join(m.content for m in again.start.messages if m.role == "assistant")
    assert "declined the card" in told
    assert "move_page (1 call" not in told


@pytest.mark.req("R-122")
async def test_the_card_names_the_language_and_falls_back_to_its_number(stack: Stack) -> None:
    path, _, _ = await waiting(stack, card("d1", PendingCallView(call_id="c1", tool="move_page", language=1)))

    async def said(language: str) -> str:
        answer = await stack.request("GET", f"{path}/messages", headers={"Accept-Language": language})
        return str(answer.json()["pendingApproval"]["calls"][0]["languageSentence"])

    assert await said("en") == "Target language: German (1)."
    assert await said("de") == "Zielsprache: German (1)."
    assert stack.store.calls["sites"] == 1


@pytest.mark.req("R-122")
async def test_a_store_that_fails_costs_the_card_only_the_name_of_the_language(stack: Stack) -> None:
    stack.store.broken = True
    path, _, _ = await waiting(stack, card("d1", PendingCallView(call_id="c1", tool="move_page", language=1)))
    asked = []
    for _ in range(2):
        poll = (await stack.request("GET", f"{path}/messages")).json()
        assert poll["pendingApproval"]["calls"][0]["languageSentence"] == "Target language: 1."
        asked.append(stack.store.calls["sites"])
    # A store that is away is not asked with every poll.
    assert asked[0] == asked[1]


def test_a_language_that_sites_name_differently_has_no_title() -> None:
    sites = [
        {"languages": [{"languageId": 1, "title": "German"}, {"languageId": 2, "title": "French"}]},
        {"languages": [{"languageId": 1, "title": "German"}, {"languageId": 2, "title": "Danish"}, "nonsense"]},
        None,
    ]
    assert titles_of_sites({"sites": sites}) == {1: "German"}
    assert titles_of_sites([]) == {}
