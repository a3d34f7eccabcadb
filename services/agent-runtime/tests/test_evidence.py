"""What a call leaves behind, and for whom: steps, lists, and their readers (W-04, C-01, C-12, C-13, S-63, T-54)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

import pytest
from agent_runtime.tools.builtin import builtin_tools
from agent_runtime.tools.builtin.updates import UpdateContentElement
from agent_runtime.tools.contracts import Plan, ToolContext, ToolResult
from agent_runtime.tools.registry import ToolRegistry
from agent_runtime.tools.result import ToolOutcome
from remit_contracts.calls import CallResult
from remit_contracts.changes import ObservedChangeSet
from remit_contracts.records import RecordReference
from remit_contracts.steps import Refusal, RefusalKind, WriteCompleteness
from runtime_support.models import ScriptedModel, asks, says, source
from runtime_support.stack import RuntimeStack, StartStack
from sqlalchemy import text

WRITE = {"uid": 5, "fields": {"header": "When we open"}}
FULL = ToolResult(
    content="what the model reads",
    is_error=False,
    artifacts=({"type": "text", "text": "for people"},),
    write_target=RecordReference(table="tt_content", uid=5),
    completeness=WriteCompleteness.PARTIAL,
    hook_failed_after_write=True,
    outcome=ToolOutcome.CANCELLED,
    refusal=Refusal(kind=RefusalKind.POLICY, code="of_the_tool"),
)


class SaysEverything(UpdateContentElement):
    """Its result has a value of its own in every property."""

    name: ClassVar[str] = "says_everything"

    async def conclude(self, plan: Plan, result: CallResult, context: ToolContext) -> ToolResult:
        return FULL


@pytest.mark.req("W-04", "W-01", "W-08")
async def test_every_property_of_a_result_reaches_its_step(start_stack: StartStack, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('[configurations.open]\nprivacy_level = "full"\n')
    model = ScriptedModel([asks(("says_everything", WRITE)), says("done")])
    parts = {"models": source(model), "registry": ToolRegistry([*builtin_tools(), SaysEverything()])}
    async with start_stack(parts=parts, configurations=path) as stack:
        run_id = await stack.start("go", configuration="open")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        await stack.run_to_pause(run_id)
        (tool,) = [step["payload"] for step in await stack.steps(run_id, "tool")]
        (write,) = [step["payload"] for step in await stack.steps(run_id, "tool_write")]
        arrived = {
            "content": tool["result"],
            "is_error": tool["isError"],
            "artifacts": tuple(tool["artifacts"]),
            "write_target": RecordReference(table=write["table"], uid=write["uid"]),
            "completeness": write["completeness"],
            "hook_failed_after_write": write["hookFailedAfterWrite"],
            "outcome": tool["outcome"],
            "refusal": Refusal.model_validate(tool["refusal"]),
        }
        # A new property without a place here fails, one that the loop loses too.
        assert arrived == {field.name: getattr(FULL, field.name) for field in dataclasses.fields(ToolResult)}
        assert all(getattr(FULL, field.name) != field.default for field in dataclasses.fields(ToolResult)[2:])
        assert model.requests[-1].messages[-1].content == FULL.content


@pytest.mark.req("C-12")
def test_the_list_of_a_call_is_no_property_of_its_result() -> None:
    names = {field.name for field in dataclasses.fields(ToolResult)}
    assert names & {"changes", "changed", "change_set", "refused", "records", "observed"} == set()
    assert not any("ObservedChangeSet" in str(field.type) for field in dataclasses.fields(ToolResult))


@pytest.mark.req("C-01", "C-13", "C-02")
async def test_lists_stand_beside_the_other_steps(start_stack: StartStack) -> None:
    turn = asks(("get_pagetree", {}), ("clear_cache", {}), ("update_content_element", WRITE))
    async with start_stack(parts={"models": source(ScriptedModel([turn, says("done")]))}) as stack:
        run_id = await stack.start("go")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        await stack.run_to_pause(run_id)
        everything = await stack.steps(run_id)
        # Neither a reading call nor one that wrote no record has a list.
        (changes,) = [step for step in everything if step["kind"] == "tool_changes"]
        assert changes["callId"] == "c3"
        of_call = [step["kind"] for step in everything if step["callId"] == "c3"]
        assert of_call == ["tool", "tool_write", "tool_changes"]
        observed = ObservedChangeSet.try_from_event_payload(changes["payload"])
        assert observed is not None
        assert len(observed.changes) == 1

        async def asked(kinds: str) -> list[str]:
            page = await stack.request("GET", f"/v1/runs/{run_id}/events?kinds={kinds}")
            body = {"runs": [str(run_id)], "kinds": kinds.split(",")}
            many = await stack.request("POST", "/v1/runs:events", json=body)
            found = [step["sequence"] for step in page.json()["steps"]]
            assert [step["sequence"] for step in many.json()["pages"][0]["steps"]] == found
            return [step["kind"] for step in page.json()["steps"]]

        # A reader that never heard of the new kind asks as before and reads what it read before.
        assert await asked("tool,tool_write") == ["tool", "tool", "tool", "tool_write"]
        assert await asked("tool_changes") == ["tool_changes"]
        assert await asked("no_such_kind") == []


@pytest.mark.req("S-63", "S-75", "S-17")
async def test_the_evidence_of_an_undone_call_stays(start_stack: StartStack) -> None:
    turn = asks(("update_content_element", WRITE), ("update_content_element", {"uid": 9, "fields": {"header": "X"}}))
    async with start_stack(parts={"models": source(ScriptedModel([turn, says("done")]))}) as stack:
        # User 1 is an administrator: the test is the scope, never the user.
        run_id = await stack.start("go", user_uid=1, actor={"assignmentScope": {"pages": [{"page": 3}]}})
        card = (await stack.run_to_pause(run_id, 1))["pending"]
        assert [bool(call["refusedByRule"]) for call in card["calls"]] == [False, True]
        stack.store.rows.side_effects = [("tt_content", 9)]
        # What comes along makes the card stale; the fresh one shows it, and it is approved all the same.
        assert (await stack.decide(run_id, 1, decision="approve")).json()["code"] == "turn_stale"
        assert (await stack.decide(run_id, 1, decision="approve")).status_code == 202
        assert (await stack.run_to_pause(run_id, 1))["status"] == "completed"
        ((_, request),) = stack.store.applied
        assert request.scope is not None
        assert stack.store.rows.tables["tt_content"][5]["header"] == "Opening hours"
        steps = await stack.steps(run_id, user_uid=1)
        undone, refused = [step["payload"]["refused"] for step in steps if step["kind"] == "tool_changes"]
        assert [(item["uid"], item["undone"]) for item in undone] == [(9, True)]
        assert [(item["uid"], item["undone"]) for item in refused] == [(9, False)]
        assert [step["payload"]["isError"] for step in steps if step["kind"] == "tool"] == [True, True]
        async with stack.runtime.database.read() as session:
            rows = await session.execute(text("SELECT decision, rule FROM governance_log WHERE rule IS NOT NULL"))
            assert [tuple(row) for row in rows] == [("invocation_denied", "assignment_scope")]


async def reads(stack: RuntimeStack, run_id: Any, user_uid: int) -> list[int]:
    answers = [
        await stack.request("GET", f"/v1/runs/{run_id}", user_uid),
        await stack.request("GET", f"/v1/runs/{run_id}/events", user_uid),
    ]
    return [answer.status_code for answer in answers]


@pytest.mark.req("T-54", "T-20")
async def test_an_administrator_reads_every_run_as_long_as_the_store_says_so(stack: RuntimeStack) -> None:
    run_id = await stack.start("set the title of page 3 to X")
    await stack.run_to_pause(run_id)
    assert await reads(stack, run_id, 1) == [200, 200]
    asked = stack.store.people[-1]
    # The store is asked on behalf of the reader, by this service, and nobody else's rights are used.
    assert (asked["iss"], asked["aud"], asked["sub"], asked["act"]) == (
        "agent-runtime",
        "content-store",
        "1",
        {"sub": "agent-runtime"},
    )
    many = await stack.request("POST", "/v1/runs:events", 1, json={"runs": [str(run_id)]})
    assert len(many.json()["pages"]) == 1
    inbox = (await stack.request("GET", "/v1/runs?status=waiting", 1)).json()
    assert [run["conversationId"] is None and run["ownerUid"] for run in inbox["runs"]] == [7]
    assert await reads(stack, run_id, 8) == [404, 404]
    # Switched off, or no administrator any more: nothing is left.
    for status in (401, 403, 404):
        stack.store.fail("GET /v1/auth/me", "answer", status=status, code="token_invalid", times=2)
        assert await reads(stack, run_id, 1) == [404, 404]
    stack.store.admins.clear()
    assert await reads(stack, run_id, 1) == [404, 404]
    # A store that cannot be asked is said, and gives nothing away.
    stack.store.fail("GET /v1/auth/me", "answer", status=503, code="service_unavailable", times=20)
    answer = await stack.request("GET", f"/v1/runs/{run_id}", 1)
    assert (answer.status_code, answer.json()["code"]) == (503, "service_unavailable")
    assert await reads(stack, run_id, 7) == [200, 200]
