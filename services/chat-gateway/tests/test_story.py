from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from gateway_support.stack import Stack
from gateway_support.store import visible
from remit_contracts.calls import CallOutcome, RehearsedCall, ShownChange
from remit_contracts.changes import ChangeAction, ObservedChangeSet, RecordChange
from remit_contracts.runs import PendingCallView, PendingTurn
from sqlalchemy import text


def card(digest: str = "d1", call: str = "c1", tool: str = "update_page_metadata") -> PendingTurn:
    change = RecordChange(table="pages", uid=3, action=ChangeAction.UPDATED, write_target=True)
    along = RecordChange(table="tt_content", uid=9, action=ChangeAction.UPDATED)
    rehearsal = RehearsedCall(
        key=call,
        outcome=CallOutcome.COMMITTED,
        shown=(
            ShownChange(table="pages", action="updated", record="3", pid="1"),
            ShownChange(table="tt_content", action="updated", record="9", pid="3"),
        ),
        changes=ObservedChangeSet(changes=(change, along)),
    )
    view = PendingCallView(call_id=call, tool=tool, preview_lines=("title: Old -> News",), rehearsal=rehearsal)
    return PendingTurn(turn_digest=digest, kind="approval", calls=(view,))


@pytest.mark.req("R-001", "R-014", "R-110", "R-120")
async def test_message_card_decision_write_and_list(stack: Stack) -> None:
    stack.store.show(visible("pages", 3, "Old"), visible("tt_content", 9, "Teaser", page_id=3))
    conversation = await stack.conversation()
    run_id, run = await stack.say(conversation)
    assert run.owner == 7
    assert run.start.conversation_id == conversation
    assert run.start.messages[-1].content == "Set the title of page 3 to News"

    run.steps.status("running")
    run.steps.llm()
    await stack.wait_with(run_id, card())
    poll = await stack.messages(conversation)
    assert poll["conversation"]["status"] == "waiting_for_approval"
    assert poll["changesAvailable"] is False
    pending = poll["pendingApproval"]
    assert pending["turnDigest"] == "d1"
    assert pending["calls"][0]["workspaceSentence"] == "Writes to the live site."
    assert pending["calls"][0]["rehearsalLines"] == [
        "Will change: “Old” (Pages, pages:3)",
        "Along with it, changed: “Teaser” (Tt_Content, tt_content:9)",
    ]
    assert pending["calls"][0]["rehearsal"] is None
    assert pending["approveLabel"] == "Approve: Change the page's properties"

    answer = await stack.request(
        "POST", f"/conversations/{conversation}/decision", {"turnDigest": "d1", "decisions": {"c1": "approve"}}
    )
    assert answer.status_code == 202, answer.text
    assert answer.json() == {"status": "running"}
    assert stack.runtime.decisions[0][0] == run_id

    run.steps.next_segment()
    run.steps.add("approval", {"decisions": {"c1": "approve"}})
    run.steps.status("running")
    run.steps.whole_write("update_page_metadata", "c1", "pages", 3)
    run.steps.llm()
    await stack.finish(run_id, "I have updated the title of page 3.")

    poll = await stack.messages(conversation)
    assert [(m["role"], m["content"]) for m in poll["messages"]] == [
        ("user", "Set the title of page 3 to News"),
        ("assistant", "I have updated the title of page 3."),
    ]
    assert poll["messages"][1]["nothingSaved"] is False
    assert poll["pendingApproval"] is None
    assert poll["changesAvailable"] is True
    assert [(line["tool"], line["code"]) for line in poll["activity"]] == [("update_page_metadata", "done")]

    found = await stack.changes(conversation)
    assert [(row["key"], row["action"], row["target"], row["title"]) for row in found["rows"]] == [
        ("pages:3", "updated", True, "Old")
    ]
    assert found["notes"][0]["code"] == "coverage"
    assert found["changesRevision"] == poll["changesRevision"]


@pytest.mark.req("R-020", "R-021", "R-022", "R-029", "R-006", "T-40")
async def test_a_new_message_leaves_the_card_undecided_and_the_next_turn_reads_so(stack: Stack) -> None:
    conversation = await stack.conversation()
    first, _ = await stack.say(conversation)
    await stack.wait_with(first, card())
    second, run = await stack.say(conversation, "Something else, please")
    assert second != first
    sent = [(m.role, m.content) for m in run.start.messages]
    assert sent[0] == ("system", "No page is selected.")
    assert sent[1] == ("user", "Set the title of page 3 to News")
    assert sent[2][0] == "assistant"
    assert sent[2][1].startswith("[Chat record — written by the chat from the run, not by the assistant: ")
    assert "left the card of this step undecided; nothing from it was saved in the chat" in sent[2][1]
    assert "may still be decided elsewhere; a later decision is not recorded here" in sent[2][1]
    assert str(first) not in sent[2][1]
    assert sent[3] == ("user", "Something else, please")
    poll = await stack.messages(conversation)
    assert poll["pendingApproval"] is None
    # Nothing of the record is stored as anybody's words.
    assert [m["content"] for m in poll["messages"]] == ["Set the title of page 3 to News", "Something else, please"]
    refused = await stack.request(
        "POST", f"/conversations/{conversation}/decision", {"turnDigest": "d1", "decision": "approve"}
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "run_not_waiting")


@pytest.mark.req("R-006", "R-110")
async def test_a_left_run_decided_elsewhere_shows_its_changes_but_does_not_speak(stack: Stack) -> None:
    stack.store.show(visible("pages", 3))
    conversation = await stack.conversation()
    first, old = await stack.say(conversation)
    await stack.wait_with(first, card())
    second, _ = await stack.say(conversation, "Something else")
    await stack.finish(second, "Fine.")
    assert (await stack.messages(conversation))["changesAvailable"] is False

    old.steps.next_segment()
    old.steps.add("approval", {"decisions": {"c1": "approve"}})
    old.steps.whole_write("update_page_metadata", "c1", "pages", 3)
    await stack.finish(first, "I have updated the page.")
    poll = await stack.messages(conversation)
    assert poll["changesAvailable"] is True
    assert poll["conversation"]["status"] == "completed"
    assert "I have updated the page." not in [m["content"] for m in poll["messages"]]
    assert [row["key"] for row in (await stack.changes(conversation))["rows"]] == ["pages:3"]
    _, third = await stack.say(conversation, "What happened?")
    told = "\n".join(m.content for m in third.start.messages)
    assert "pages:3" not in told


async def test_a_second_message_while_a_turn_runs_is_refused(stack: Stack) -> None:
    conversation = await stack.conversation()
    await stack.say(conversation)
    answer = await stack.request("POST", f"/conversations/{conversation}/messages", {"content": "And another"})
    assert (answer.status_code, answer.json()["code"]) == (409, "turn_running")
    assert len((await stack.messages(conversation))["messages"]) == 1
    assert len(stack.runtime.runs) == 1


@pytest.mark.req("R-065")
async def test_scope_and_workspace_ride_on_the_actor_of_every_run(stack: Stack) -> None:
    scope = {"pages": [{"page": 4, "depth": 1}]}
    conversation = await stack.conversation(assignmentScope=scope, workspaceId=3)
    first, run = await stack.say(conversation)
    await stack.finish(first)
    _, again = await stack.say(conversation, "More")
    for started in (run, again):
        assert started.start.actor.workspace_id == 3
        assert started.start.actor.assignment_scope is not None
        assert started.start.actor.assignment_scope.pages[0].page == 4
        assert started.start.actor.user_uid == 7


@pytest.mark.req("R-065", "R-061")
async def test_without_a_scope_the_actor_has_none_whatever_page_is_selected_now_or_before(stack: Stack) -> None:
    stack.store.show(visible("pages", 3, "News"))
    conversation = await stack.conversation()
    for context in ({"pageId": 3}, {"pageId": 0}):
        body = {"content": "Go on", "viewContext": context}
        answer = await stack.request("POST", f"/conversations/{conversation}/messages", body)
        assert answer.status_code == 202
        run_id, run = stack.runtime.only()
        assert run.start.actor.assignment_scope is None
        system, *rest = run.start.messages
        assert "page 3" in system.content
        # Of the page selected last, nothing but the prompt's own text goes anywhere.
        assert "lastPageId" not in run.start.model_dump_json()
        assert "page 3" not in "".join(message.content for message in rest)
        await stack.finish(run_id)


@pytest.mark.req("R-061")
def test_nothing_but_the_prompt_builder_knows_the_page_selected_last() -> None:
    package = Path(str(files("chat_gateway")))
    sources = {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    assert len(sources) > 50
    naming = {name for name, source in sources.items() if "lastPageId" in source or "last_page_id" in source}
    assert naming == {"conversations/view_context.py"}
    # What may fall back to it is asked for titles in the prompt alone.
    users = {name for name, source in sources.items() if "page_to_name" in source}
    assert users == {"conversations/view_context.py", "conversations/service.py"}
    assert sources["conversations/service.py"].count("page_to_name(") == 1


@pytest.mark.req("R-126")
@pytest.mark.parametrize(
    ("refusal", "ms", "code"), [("not_permitted", 0.0, "not_permitted"), ("policy", 3.5, "failed")]
)
async def test_an_approved_call_that_is_refused_when_it_runs_is_shown_as_not_carried_out(
    stack: Stack, refusal: str, ms: float, code: str
) -> None:
    conversation = await stack.conversation()
    run_id, run = await stack.say(conversation)
    await stack.wait_with(run_id, card())
    decided = await stack.request(
        "POST", f"/conversations/{conversation}/decision", {"turnDigest": "d1", "decision": "approve"}
    )
    # The answer to a decision says that the run goes on, and nothing about what was carried out.
    assert (decided.status_code, decided.json()) == (202, {"status": "running"})
    run.steps.next_segment()
    run.steps.add("approval", {"decisions": {"c1": "approve"}})
    run.steps.tool("update_page_metadata", "c1", error=True, ms=ms, refusal=refusal)
    run.steps.llm()
    await stack.finish(run_id, "It was not allowed any more.")
    poll = await stack.messages(conversation)
    assert [(line["tool"], line["code"]) for line in poll["activity"]] == [("update_page_metadata", code)]
    assert poll["changesAvailable"] is False
    assert (await stack.changes(conversation))["rows"] == []


@pytest.mark.req("R-046")
async def test_activity_lines_of_closed_segments_keep_the_form_they_have(stack: Stack) -> None:
    conversation = await stack.conversation()
    run_id, run = await stack.say(conversation)
    run.steps.tool("update_page_metadata", "c0")
    await stack.wait_with(run_id, card())
    async with stack.database.unit_of_work() as session:
        await session.execute(
            text("UPDATE activity SET entry = jsonb_set(entry::jsonb, '{code}', '\"written_by_an_older_version\"')")
        )
    run.steps.next_segment()
    run.steps.add("approval", {"decisions": {"c1": "approve"}})
    run.steps.whole_write("update_page_metadata", "c1", "pages", 3)
    run.steps.llm()
    await stack.finish(run_id)
    codes = [(line["callId"], line["code"]) for line in (await stack.messages(conversation))["activity"]]
    assert codes == [("c0", "written_by_an_older_version"), ("c1", "done")]
