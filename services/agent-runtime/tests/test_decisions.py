from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from runtime_support.models import ScriptedModel, asks, says, source
from runtime_support.stack import RuntimeStack, StartStack

TWO = asks(
    ("update_page_metadata", {"uid": 3, "title": "City museum"}),
    ("update_content_element", {"uid": 5, "fields": {"header": "When we open"}}),
)


def scripted(*replies: Any) -> dict[str, Any]:
    return {"models": source(ScriptedModel(replies))}


def configured(folder: Path, text: str) -> Path:
    path = folder / "configurations.toml"
    path.write_text(text)
    return path


@pytest.mark.req("T-33", "T-07", "T-08")
async def test_each_call_is_decided_by_itself(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted(TWO, says("done"))) as stack:
        run_id = await stack.start("two things")
        await stack.run_to_pause(run_id)
        answer = await stack.decide(run_id, decisions={"c1": "decline", "c2": "approve"}, reason="skip")
        assert answer.status_code == 202
        run = await stack.run_to_pause(run_id)
        assert run["status"] == "completed"
        assert stack.store.rows.tables["pages"][3]["title"] == "Museum"
        assert stack.store.rows.tables["tt_content"][5]["header"] == "When we open"
        declined, done = await stack.steps(run_id, "tool")
        assert declined["payload"]["refusal"]["kind"] == "declined"
        assert declined["durationMs"] == 0.0
        assert not done["payload"]["isError"]
        assert done["durationMs"] > 0.0
        (approval,) = await stack.steps(run_id, "approval")
        assert approval["payload"]["decidedBy"] == "self"
        assert approval["payload"]["decisions"] == {"c1": "decline", "c2": "approve"}


@pytest.mark.req("T-33")
async def test_a_decision_names_every_call_exactly_once(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted(TWO, says("done"))) as stack:
        run_id = await stack.start("two things")
        await stack.run_to_pause(run_id)
        for decision in (
            {"decisions": {"c1": "approve"}},
            {"decisions": {"c1": "approve", "c2": "approve", "c3": "approve"}},
            {"decisions": {"c1": "approve", "c2": "approve"}, "decision": "approve"},
            {},
        ):
            answer = await stack.decide(run_id, **decision)
            assert (answer.status_code, answer.json()["code"]) == (422, "decision_incomplete")
        assert (await stack.view(run_id))["status"] == "waiting_for_approval"


@pytest.mark.req("T-31", "T-34")
async def test_a_card_that_changed_comes_back_instead_of_running(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted(TWO, says("done"))) as stack:
        run_id = await stack.start("two things")
        first = (await stack.run_to_pause(run_id))["pending"]
        stack.store.rows.tables["tt_content"][5]["header"] = "Changed by somebody"
        answer = await stack.decide(run_id, decision="approve")
        assert (answer.status_code, answer.json()["code"]) == (409, "turn_stale")
        fresh = answer.json()["pending"]
        assert fresh["turnDigest"] != first["turnDigest"]
        assert [call["previewStale"] for call in fresh["calls"]] == [False, True]
        assert not stack.store.applied
        old = {"turnDigest": first["turnDigest"], "decision": "approve"}
        again = await stack.request("POST", f"/v1/runs/{run_id}/decision", json=old)
        assert again.json()["code"] == "turn_stale"
        assert (await stack.decide(run_id, decision="approve")).status_code == 202
        assert (await stack.run_to_pause(run_id))["status"] == "completed"


@pytest.mark.req("T-34")
async def test_what_comes_along_is_part_of_what_is_approved(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted(TWO, says("done"))) as stack:
        run_id = await stack.start("two things")
        await stack.run_to_pause(run_id)
        stack.store.rows.side_effects = [("tt_content", 9)]
        answer = await stack.decide(run_id, decision="approve")
        assert answer.json()["code"] == "turn_stale"
        rehearsed = answer.json()["pending"]["calls"][0]["rehearsal"]["changes"]["changes"]
        assert [change["uid"] for change in rehearsed] == [3, 9]


@pytest.mark.req("T-34")
async def test_more_than_the_card_showed_is_undone_and_shown_anew(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted(TWO, says("done"))) as stack:
        run_id = await stack.start("two things")
        await stack.run_to_pause(run_id)
        assert (await stack.decide(run_id, decisions={"c1": "approve", "c2": "decline"})).status_code == 202
        stack.store.rows.side_effects = [("tt_content", 9)]
        run = await stack.run_to_pause(run_id)
        assert run["status"] == "waiting_for_approval"
        assert [call["callId"] for call in run["pending"]["calls"]] == ["c1"]
        assert stack.store.rows.tables["pages"][3]["title"] == "Museum"
        assert stack.store.rows.tables["tt_content"][9]["header"] == "Books"
        assert (await stack.decide(run_id, decision="approve")).status_code == 202
        assert (await stack.run_to_pause(run_id))["status"] == "completed"
        assert stack.store.rows.tables["tt_content"][9]["header"] == "changed along"


@pytest.mark.req("T-39", "T-32")
async def test_of_two_decisions_at_once_one_is_carried_out(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted(TWO, says("done"))) as stack:
        run_id = await stack.start("two things")
        digest = (await stack.run_to_pause(run_id))["pending"]["turnDigest"]
        body = {"turnDigest": digest, "decision": "approve"}
        answers = await asyncio.gather(
            *(stack.request("POST", f"/v1/runs/{run_id}/decision", json=body) for _ in range(4))
        )
        assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409]
        late = [answer.json() for answer in answers if answer.status_code == 409]
        assert {item["code"] for item in late} == {"run_not_waiting"}
        assert all(item["run"]["id"] == str(run_id) for item in late)
        await stack.run_to_pause(run_id)
        assert len(stack.store.applied) == 2


@pytest.mark.req("T-32", "T-36")
async def test_a_refusal_after_the_claim_leaves_the_run_waiting(start_stack: StartStack) -> None:
    async with start_stack(parts=scripted(TWO, says("done"))) as stack:
        run_id = await stack.start("two things")
        before = await stack.run_to_pause(run_id)
        stack.store.fail("POST /v1/rehearsals", "answer", status=503, code="busy")
        answer = await stack.decide(run_id, decision="approve")
        assert answer.json()["code"] == "turn_stale"
        assert answer.json()["pending"]["approveBlocked"] == "preview"
        blocked = await stack.request(
            "POST",
            f"/v1/runs/{run_id}/decision",
            json={"turnDigest": answer.json()["pending"]["turnDigest"], "decision": "approve"},
        )
        # The store can rehearse again: what is shown changed once more, for the better.
        assert blocked.json()["code"] == "turn_stale"
        after = await stack.view(run_id)
        assert after["status"] == "waiting_for_approval"
        assert after["pending"]["turnDigest"] == before["pending"]["turnDigest"]
        assert (await stack.decide(run_id, decision="approve")).status_code == 202
        assert (await stack.run_to_pause(run_id))["status"] == "completed"


@pytest.mark.req("T-30", "T-34")
async def test_what_cannot_be_rehearsed_cannot_be_approved(start_stack: StartStack, tmp_path: Path) -> None:
    path = configured(tmp_path, "[configurations.loose]\nallow_unrehearsed = true\n")
    async with start_stack(parts=scripted(TWO, says("done")), configurations=path) as stack:
        stack.store.fail("POST /v1/rehearsals", "answer", times=99, code="locked", status=409)
        run_id = await stack.start("two things")
        card = (await stack.run_to_pause(run_id))["pending"]
        assert card["approveBlocked"] == "preview"
        assert card["calls"][0]["rehearsal"]["problem"] == "locked"
        answer = await stack.decide(run_id, decision="approve")
        assert (answer.status_code, answer.json()["code"]) == (409, "approval_blocked")
        assert (await stack.view(run_id))["status"] == "waiting_for_approval"
        loose = await stack.start("two things", configuration="loose")
        assert (await stack.run_to_pause(loose))["pending"]["approveBlocked"] == ""
        assert (await stack.decide(loose, decision="approve")).status_code == 202
        assert (await stack.run_to_pause(loose))["status"] == "completed"


@pytest.mark.req("T-35")
async def test_a_second_person_where_the_configuration_asks_for_one(start_stack: StartStack, tmp_path: Path) -> None:
    path = configured(tmp_path, "[configurations.two]\nfour_eyes = true\napprovers = [8]\n")
    async with start_stack(parts=scripted(TWO, says("done")), configurations=path) as stack:
        run_id = await stack.start("two things", configuration="two")
        card = (await stack.run_to_pause(run_id))["pending"]
        assert (card["approveBlocked"], card["secondPerson"]) == ("secondApprover", True)
        answer = await stack.decide(run_id, decision="approve")
        assert (answer.status_code, answer.json()["code"]) == (403, "second_person_required")
        stranger = {"turnDigest": card["turnDigest"], "decision": "approve"}
        assert (await stack.request("POST", f"/v1/runs/{run_id}/decision", 9, json=stranger)).status_code == 404
        seen = await stack.view(run_id, user_uid=8)
        assert seen["pending"]["approveBlocked"] == ""
        assert (await stack.request("GET", f"/v1/runs/{run_id}/events", 8)).status_code == 404
        assert (await stack.decide(run_id, user_uid=8, decision="approve")).status_code == 202
        assert (await stack.run_to_pause(run_id))["status"] == "completed"
        (approval,) = await stack.steps(run_id, "approval")
        assert approval["payload"]["decidedBy"] == "secondPerson"
        assert all(request.actor.user_uid == 7 for _, request in stack.store.applied)
        declined = await stack.start("two things", configuration="two")
        await stack.run_to_pause(declined)
        assert (await stack.decide(declined, decision="decline")).status_code == 202


@pytest.mark.req("T-32", "T-30")
async def test_an_approver_must_be_able_to_do_it_in_person(start_stack: StartStack, tmp_path: Path) -> None:
    path = configured(tmp_path, "[configurations.two]\napprovers = [8]\n")
    async with start_stack(parts=scripted(TWO, says("done")), configurations=path) as stack:
        # User 7 owns the run and may see page 3; user 8 may not.
        run_id = await stack.start("two things", configuration="two")
        await stack.run_to_pause(run_id)
        stack.store.rows.forbidden.add(("pages", 3, 8))
        card = (await stack.view(run_id, user_uid=8))["pending"]
        assert card["calls"][0]["arguments"] == {}
        assert "Museum" not in str(card["calls"][0])
        assert "When we open" in str(card["calls"][1])
        answer = await stack.decide(run_id, user_uid=8, decision="approve")
        assert (answer.status_code, answer.json()["code"]) == (403, "approver_not_permitted")
        assert (await stack.view(run_id))["status"] == "waiting_for_approval"
        some = await stack.decide(run_id, user_uid=8, decisions={"c1": "decline", "c2": "approve"})
        assert some.status_code == 202


@pytest.mark.req("T-20", "T-54")
async def test_foreign_and_unknown_runs_look_the_same(stack: RuntimeStack) -> None:
    run_id = await stack.start("list pages")
    await stack.run_to_pause(run_id)
    body = {"turnDigest": "x", "decision": "approve"}
    for method, tail, json in (
        ("GET", "", None),
        ("GET", "/events", None),
        ("POST", "/cancel", None),
        ("POST", "/decision", body),
    ):
        foreign = await stack.request(method, f"/v1/runs/{run_id}{tail}", 8, json=json)
        unknown = await stack.request(method, f"/v1/runs/{uuid4()}{tail}", 8, json=json)
        assert foreign.status_code == unknown.status_code == 404
        assert foreign.json()["code"] == unknown.json()["code"] == "run_not_found"
    assert (await stack.request("GET", f"/v1/runs/{run_id}", 1)).status_code == 200
    query = {"runs": [str(run_id), str(uuid4())]}
    mine = (await stack.request("POST", "/v1/runs:events", 7, json=query)).json()
    theirs = (await stack.request("POST", "/v1/runs:events", 8, json=query)).json()
    assert (len(mine["pages"]), mine["unreadable"]) == (1, 1)
    assert (len(theirs["pages"]), theirs["unreadable"]) == (0, 2)


@pytest.mark.req("T-40")
async def test_waiting_runs_are_in_the_inbox(stack: RuntimeStack) -> None:
    run_id = await stack.start("set the title of page 3 to X")
    other = await stack.start("set the title of page 4 to X", user_uid=8)
    await stack.worker().run_until_idle()
    mine = (await stack.request("GET", "/v1/runs?status=waiting")).json()
    assert [run["id"] for run in mine["runs"]] == [str(run_id)]
    everything = (await stack.request("GET", "/v1/runs?status=waiting&limit=1", 1)).json()
    assert everything["nextCursor"] == str(run_id)
    rest = (await stack.request("GET", f"/v1/runs?status=waiting&limit=1&cursor={run_id}", 1)).json()
    assert [run["id"] for run in rest["runs"]] == [str(other)]


@pytest.mark.req("T-37", "T-63", "T-05")
async def test_a_question_waits_for_one_of_its_answers(start_stack: StartStack) -> None:
    question = ("ask_choice", {"question": "Which one?", "options": ["red", "blue"]})
    more = ("ask_choice", {"question": "And?", "options": ["a", "b"]})
    model = ScriptedModel([asks(question, more, ("get_pagetree", {})), says("done")])
    async with start_stack(parts={"models": source(model)}) as stack:
        run_id = await stack.start("ask me")
        run = await stack.run_to_pause(run_id)
        assert run["status"] == "waiting_for_input"
        assert run["pending"]["question"] == {"callId": "c1", "question": "Which one?", "options": ["red", "blue"]}
        digest = run["pending"]["turnDigest"]
        wrong = await stack.request("POST", f"/v1/runs/{run_id}/answer", json={"turnDigest": digest, "answer": "green"})
        assert wrong.json()["code"] == "answer_invalid"
        right = await stack.request("POST", f"/v1/runs/{run_id}/answer", json={"turnDigest": digest, "answer": "blue"})
        assert right.status_code == 202
        run = await stack.run_to_pause(run_id)
        assert run["status"] == "completed"
        told = [message.content for message in model.requests[-1].messages if message.role == "tool"]
        assert told[0] == "The person chose: blue"
        assert told[1].startswith("Error: ")
        steps = await stack.steps(run_id, "tool")
        assert steps[1]["payload"]["refusal"]["kind"] == "held"
        assert (steps[1]["durationMs"], steps[2]["payload"]["isError"]) == (0.0, False)
        (given,) = await stack.steps(run_id, "input")
        assert "blue" not in str(given)


@pytest.mark.req("T-37", "T-52")
async def test_a_write_beside_a_question_is_held_by_the_card_first(start_stack: StartStack) -> None:
    turn = asks(
        ("ask_choice", {"question": "Which one?", "options": ["red", "blue"]}),
        ("update_page_metadata", {"uid": 3, "title": "City museum"}),
    )
    async with start_stack(parts=scripted(turn, says("done"))) as stack:
        run_id = await stack.start("both")
        run = await stack.run_to_pause(run_id)
        # Approval comes before input; the question is held back.
        assert run["status"] == "waiting_for_approval"
        assert [call["callId"] for call in run["pending"]["calls"]] == ["c2"]
        await stack.decide(run_id, decision="approve")
        await stack.run_to_pause(run_id)
        asked, written = await stack.steps(run_id, "tool")
        assert (asked["payload"]["refusal"]["kind"], asked["durationMs"]) == ("held", 0.0)
        assert not written["payload"]["isError"]
