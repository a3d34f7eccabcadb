"""The remit of a run: carried, computed per call, asked before the card and again before the call (S-09 to S-29)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from agent_runtime.configurations.registry import ConfigurationRegistry
from agent_runtime.rules.contracts import RuleContext, RuleDenial
from agent_runtime.rules.draft_workspace import DraftWorkspaceRule
from agent_runtime.tools.builtin import builtin_tools
from agent_runtime.tools.contracts import ScopedWrite, Tool, ToolArguments, ToolContext
from agent_runtime.tools.registry import ToolRegistry
from agent_runtime.tools.result import ToolResult
from remit_contracts.calls import ToolEffect
from runtime_support.models import ScriptedModel, asks, says, source
from runtime_support.stack import RuntimeStack, StartStack
from sqlalchemy import text

PAGE_4 = {"assignmentScope": {"pages": [{"page": 4, "depth": 0}]}}
TWO = asks(
    ("update_page_metadata", {"uid": 3, "title": "City museum"}),
    ("update_content_element", {"uid": 9, "fields": {"header": "Novels"}}),
)


def scripted(*replies: Any) -> dict[str, Any]:
    return {"models": source(ScriptedModel(replies))}


async def governance(stack: RuntimeStack, decision: str) -> list[tuple[str, str | None, str | None]]:
    async with stack.runtime.database.read() as session:
        rows = await session.execute(
            text("SELECT call_id, rule, reason FROM governance_log WHERE decision = :decision ORDER BY id"),
            {"decision": decision},
        )
        return [(row.call_id, row.rule, row.reason) for row in rows]


@pytest.mark.req("S-20", "S-24", "S-71", "S-73", "S-76", "P-03", "S-23", "T-38", "T-52")
@pytest.mark.parametrize("decision", ["approve", "decline"])
async def test_a_call_outside_is_marked_and_recorded_once(start_stack: StartStack, decision: str) -> None:
    async with start_stack(parts=scripted(TWO, says("done"))) as stack:
        run_id = await stack.start("two", actor={**PAGE_4, "locale": "de"})
        card = (await stack.run_to_pause(run_id))["pending"]
        outside, inside = card["calls"]
        assert outside["refusedByRule"]["rule"] == "assignment_scope"
        assert outside["refusedByRule"]["code"] == "outside_scope"
        assert outside["previewLines"] == [outside["refusedByRule"]["explanation"]]
        assert "pages:3" in outside["previewLines"][0]
        assert "liegt außerhalb" in outside["previewLines"][0]
        assert inside["refusedByRule"] is None
        # The ask before the card leaves no trace.
        assert await governance(stack, "invocation_denied") == []
        assert await stack.steps(run_id, "tool_changes") == []
        await stack.decide(run_id, decisions={"c1": decision, "c2": "approve"})
        await stack.run_to_pause(run_id)
        assert await governance(stack, "invocation_denied") == [("c1", "assignment_scope", "outside_scope")]
        refused, _changed = await stack.steps(run_id, "tool_changes")
        assert refused["payload"]["changes"] == []
        (item,) = refused["payload"]["refused"]
        assert (item["operation"], item["table"], item["uid"], item["reason"]) == (
            "update",
            "pages",
            3,
            "outside_scope",
        )
        first, second = await stack.steps(run_id, "tool")
        assert first["payload"]["isError"]
        assert not second["payload"]["isError"]
        if decision == "approve":
            assert first["payload"]["refusal"] == {"kind": "policy", "code": "assignment_scope"}
            assert first["durationMs"] > 0.0
        else:
            assert first["payload"]["refusal"]["kind"] == "declined"
        assert stack.store.rows.tables["pages"][3]["title"] == "Museum"


@pytest.mark.req("S-20", "T-38")
async def test_a_card_of_refused_calls_cannot_be_approved(start_stack: StartStack) -> None:
    turn = asks(("update_page_metadata", {"uid": 3, "title": "X"}))
    async with start_stack(parts=scripted(turn, says("done"))) as stack:
        run_id = await stack.start("one", actor=PAGE_4)
        card = (await stack.run_to_pause(run_id))["pending"]
        assert (card["approveBlocked"], card["approveBlockedReasons"]) == ("allRefused", ["allRefused"])
        answer = await stack.decide(run_id, decision="approve")
        assert (answer.status_code, answer.json()["code"]) == (409, "approval_blocked")
        assert (await stack.decide(run_id, decision="decline")).status_code == 202
        assert (await stack.run_to_pause(run_id))["status"] == "completed"


@pytest.mark.req("S-09", "S-10", "S-11")
async def test_the_stored_actor_keeps_three_states_apart(stack: RuntimeStack) -> None:
    bare = await stack.start("list pages")
    scoped = await stack.start("list pages", actor=PAGE_4)
    async with stack.runtime.database.unit_of_work() as session:
        stored = {
            str(row.id): row.actor for row in await session.execute(text("SELECT id, actor::text AS actor FROM run"))
        }
        assert "assignmentScope" not in stored[str(bare)]
        assert '"page":4' in stored[str(scoped)]
        damaged = await stack.start("list pages", actor=PAGE_4)
        await session.execute(
            text("""UPDATE run SET actor = '{"userUid": 7, "assignmentScope": {"pages": "all"}}' WHERE id = :id"""),
            {"id": damaged},
        )
    journal = stack.runtime.journal
    async with stack.runtime.database.read() as session:
        found = {run.id: run.actor for run in await journal.runs.many(session, [bare, scoped, damaged])}
    assert found[bare].assignment_scope is None
    assert [root.page for root in found[scoped].assignment_scope.pages] == [4]  # type: ignore[union-attr]
    assert found[damaged].assignment_scope.admits_nothing  # type: ignore[union-attr]


@pytest.mark.req("S-01", "S-11")
async def test_an_unreadable_scope_is_refused_at_the_start(stack: RuntimeStack) -> None:
    body = {
        "actor": {"userUid": 7, "assignmentScope": {"pages": [{"page": 0, "depth": 100}]}},
        "configuration": "default",
        "messages": [{"role": "user", "content": "list pages"}],
    }
    assert (await stack.request("POST", "/v1/runs", json=body)).status_code == 422
    body["assignmentScope"] = {"pages": []}
    body["actor"] = {"userUid": 7}
    assert (await stack.request("POST", "/v1/runs", json=body)).status_code == 422


@pytest.mark.req("S-12", "S-14", "S-15", "S-28")
async def test_a_switch_turned_on_while_the_run_waits_counts_for_the_call_that_resumes(
    start_stack: StartStack, tmp_path: Path
) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[configurations.loose]\n")
    turn = asks(("update_page_metadata", {"uid": 3, "title": "X"}), ("clear_cache", {}))
    async with start_stack(parts=scripted(turn, says("done")), configurations=path) as stack:
        run_id = await stack.start("one", configuration="loose")
        card = (await stack.run_to_pause(run_id))["pending"]
        assert [call["refusedByRule"] for call in card["calls"]] == [None, None]
        assert (await stack.decide(run_id, decision="approve")).status_code == 202
        path.write_text("[configurations.loose]\nrequire_assignment_scope = true\n")
        await stack.run_to_pause(run_id)
        steps = await stack.steps(run_id, "tool")
        assert [step["payload"]["refusal"]["code"] for step in steps] == ["assignment_scope"] * 2
        assert stack.store.rows.tables["pages"][3]["title"] == "Museum"
        starting = await stack.start("one", configuration="loose")
        assert (await stack.run_to_pause(starting))["pending"]["approveBlocked"] == "allRefused"


@pytest.mark.req("S-13", "S-14", "S-12")
async def test_what_a_call_is_held_to_is_sent_with_it(start_stack: StartStack, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[configurations.capped]\nassignment_scope_max_depth = 9\n")
    turn = asks(("update_content_element", {"uid": 9, "fields": {"header": "Novels"}}))
    async with start_stack(parts=scripted(turn, says("done")), configurations=path) as stack:
        actor = {"assignmentScope": {"pages": [{"page": 4, "depth": 50}]}}
        run_id = await stack.start("one", configuration="capped", actor=actor)
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        path.write_text("[configurations.capped]\nassignment_scope_max_depth = 2\nlabel = 'lowered'\n")
        await stack.run_to_pause(run_id)
        ((_, request),) = stack.store.applied
        assert request.scope is not None
        assert [root.depth for root in request.scope.pages] == [2]
        assert request.actor.user_uid == 7


@pytest.mark.req("S-28", "W-02")
async def test_clearing_caches_passes_under_every_scope(start_stack: StartStack) -> None:
    turn = asks(("clear_cache", {}))
    async with start_stack(parts=scripted(turn, says("done"))) as stack:
        run_id = await stack.start("one", actor={"assignmentScope": {}})
        card = (await stack.run_to_pause(run_id))["pending"]
        assert card["calls"][0]["refusedByRule"] is None
        await stack.decide(run_id, decision="approve")
        await stack.run_to_pause(run_id)
        (step,) = await stack.steps(run_id, "tool")
        assert not step["payload"]["isError"]
        assert await stack.steps(run_id, "tool_write") == []


class AnyArguments(ToolArguments):
    uid: int = 1


class _Foreign(Tool[AnyArguments]):
    arguments: ClassVar[type[ToolArguments]] = AnyArguments
    description: ClassVar[str] = "a tool of somebody else"

    async def execute(self, arguments: AnyArguments, context: ToolContext) -> ToolResult:
        return ToolResult("ran")


class SendsMail(_Foreign):
    name: ClassVar[str] = "send_mail"
    effect: ClassVar[ToolEffect] = ToolEffect.REMOTE


class Undeclared(_Foreign):
    name: ClassVar[str] = "undeclared"
    requires_approval: ClassVar[bool] = True


class Uploads(_Foreign):
    name: ClassVar[str] = "upload"
    requires_approval: ClassVar[bool] = True

    def scoped_write(self, arguments: AnyArguments) -> ScopedWrite:
        from agent_runtime.tools.contracts import ClaimOperation

        return ScopedWrite(ClaimOperation.CREATE, writes_files=True)


class Reads(_Foreign):
    name: ClassVar[str] = "reads"
    effect: ClassVar[ToolEffect] = ToolEffect.READ


FOREIGN = asks(("send_mail", {}), ("undeclared", {}), ("upload", {}), ("reads", {}))


@pytest.mark.req("S-23", "S-25", "S-26", "S-27", "T-50")
async def test_what_a_scope_cannot_hold_is_refused(start_stack: StartStack) -> None:
    registry = ToolRegistry([*builtin_tools(), SendsMail(), Undeclared(), Uploads(), Reads()])
    parts = {**scripted(FOREIGN, says("done")), "registry": registry}
    async with start_stack(parts=parts) as stack:
        run_id = await stack.start("foreign", actor=PAGE_4)
        card = (await stack.run_to_pause(run_id))["pending"]
        codes = [call["refusedByRule"]["code"] for call in card["calls"]]
        assert codes == ["scope_remote_write", "scope_unresolvable", "scope_files_write"]
        await stack.decide(run_id, decision="decline")
        await stack.run_to_pause(run_id)
        last = (await stack.steps(run_id, "tool"))[-1]
        assert (last["payload"]["toolName"], last["payload"]["isError"]) == ("reads", False)
        free = await stack.start("foreign")
        free_card = (await stack.run_to_pause(free))["pending"]
        assert [call["refusedByRule"] for call in free_card["calls"]] == [None, None, None]


@pytest.mark.req("T-50", "P-01")
async def test_a_draft_workspace_rule_refuses_live_and_remote_writes(start_stack: StartStack, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[configurations.draft]\nrequire_draft_workspace = true\n")
    registry = ToolRegistry([*builtin_tools(), SendsMail(), Undeclared(), Uploads(), Reads()])
    parts = {**scripted(FOREIGN, says("done")), "registry": registry}
    async with start_stack(parts=parts, configurations=path) as stack:
        live = await stack.start("foreign", configuration="draft")
        codes = [call["refusedByRule"]["code"] for call in (await stack.run_to_pause(live))["pending"]["calls"]]
        assert codes == ["remote_write", "live_workspace", "live_workspace"]
        draft = await stack.start("foreign", configuration="draft", actor={"workspaceId": 2})
        card = (await stack.run_to_pause(draft))["pending"]
        assert [bool(call["refusedByRule"]) for call in card["calls"]] == [True, False, False]
        assert [call["workspaceId"] for call in card["calls"]] == [2, 2, 2]
        assert card["calls"][0]["workspaceTitle"] is None
        assert card["calls"][0]["requiresDraftWorkspace"]


class Breaks:
    id = "breaks"

    async def judge(self, context: RuleContext) -> Mapping[str, RuleDenial]:
        raise RuntimeError("secret text of the rule")


@pytest.mark.req("T-50", "T-06")
async def test_a_rule_that_raises_denies(start_stack: StartStack) -> None:
    turn = asks(("update_page_metadata", {"uid": 3, "title": "X"}), ("get_pagetree", {}))
    model = ScriptedModel([turn, says("done")])
    parts = {"models": source(model), "rules": [DraftWorkspaceRule(), Breaks()]}
    async with start_stack(parts=parts) as stack:
        run_id = await stack.start("one")
        card = (await stack.run_to_pause(run_id))["pending"]
        assert card["calls"][0]["refusedByRule"]["code"] == "rule_failed"
        assert "secret" not in str(card)
        await stack.decide(run_id, decision="decline")
        await stack.run_to_pause(run_id)
        told = [message for message in model.requests[-1].messages if message.role == "tool"]
        assert not told[1].is_error


@pytest.mark.req("S-20", "S-23")
async def test_a_claim_the_store_leaves_unanswered_is_refused(start_stack: StartStack) -> None:
    turn = asks(("update_content_element", {"uid": 9, "fields": {"header": "Novels"}}))
    async with start_stack(parts=scripted(turn, says("done"))) as stack:
        stack.store.answer_claims = False
        run_id = await stack.start("one", actor=PAGE_4)
        card = (await stack.run_to_pause(run_id))["pending"]
        assert card["calls"][0]["refusedByRule"]["code"] == "scope_unresolvable"
        # Control: answered, the same call passes.
        stack.store.answer_claims = True
        other = await stack.start("one", actor=PAGE_4)
        assert (await stack.run_to_pause(other))["pending"]["calls"][0]["refusedByRule"] is None
        assert sum(line == "POST /v1/claims" for line in stack.store.requests) == 2


@pytest.mark.req("S-21", "S-29", "S-22")
def test_claims_by_operation() -> None:
    tools = {tool.name: tool for tool in builtin_tools()}

    def claim(name: str, **arguments: Any) -> ScopedWrite:
        found = tools[name].scoped_write(tools[name].arguments.model_validate(arguments))
        assert found is not None
        return found

    moved = claim("move_content_element", uid=5, targetPage=4, afterContentUid=9)
    assert [str(record) for record in moved.records] == ["tt_content:5", "tt_content:9"]
    assert [(page.page, page.table) for page in moved.pages] == [(4, "tt_content")]
    page = claim("move_page", uid=3, parent=4)
    assert (page.subtree, [target.table for target in page.pages]) == (True, ["pages"])
    localized = claim("create_translation_draft", table="tt_content", uid=5, language=1)
    assert (localized.language, localized.source_language) == (1, 0)
    assert claim("delete_record", table="pages", uid=3).subtree
    assert not claim("delete_record", table="tt_content", uid=5).subtree
    created = claim("create_content_element_draft", page=3, header="x", language=1, afterContentUid=5)
    assert (created.language, [str(record) for record in created.records]) == (1, ["tt_content:5"])
    copied = claim("copy_record", table="tt_content", uid=5, targetPage=4, afterUid=9)
    assert (len(copied.records), copied.subtree, copied.pages[0].page) == (2, False, 4)
    assert claim("clear_cache").touches_no_record


def test_the_builtin_configuration_is_the_demo() -> None:
    (default,) = ConfigurationRegistry().all()
    assert (default.name, default.model, default.require_assignment_scope) == ("default", "demo", False)
