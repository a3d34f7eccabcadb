"""A call that waits for something outside: what it wrote stands, or nothing is waited for (S-61)."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from agent_runtime.questions.ask_choice import AskChoice
from agent_runtime.tools.builtin import builtin_tools
from agent_runtime.tools.builtin.updates import UpdateContentElement
from agent_runtime.tools.contracts import DependencyPending, Plan, ToolContext, ToolResult
from agent_runtime.tools.registry import ToolRegistrationError, ToolRegistry
from remit_contracts.calls import CallResult
from runtime_support.models import ScriptedModel, asks, says, source
from runtime_support.stack import RuntimeStack, StartStack

PAGE_3 = {"assignmentScope": {"pages": [{"page": 3}]}}
WRITE = {"uid": 5, "fields": {"header": "When we open"}}


class Ordered(UpdateContentElement):
    """Writes, then waits, whatever became of the write."""

    name: ClassVar[str] = "ordered"
    dependency: ClassVar[bool] = True

    async def conclude(self, plan: Plan, result: CallResult, context: ToolContext) -> ToolResult:
        raise DependencyPending("the\nprinter", await super().conclude(plan, result, context))


class Careless(Ordered):
    """The same without a result of its own, as a tool would that does not look at what happened."""

    name: ClassVar[str] = "careless"

    async def conclude(self, plan: Plan, result: CallResult, context: ToolContext) -> ToolResult:
        raise DependencyPending("the printer")


class Undeclared(Careless):
    name: ClassVar[str] = "undeclared_dependency"
    dependency: ClassVar[bool] = False


def parts(model: ScriptedModel) -> dict[str, Any]:
    tools = [*builtin_tools(), Ordered(), Careless(), Undeclared()]
    return {"models": source(model), "registry": ToolRegistry(tools)}


async def approved(stack: RuntimeStack, **actor: Any) -> Any:
    run_id = await stack.start("go", actor=actor)
    await stack.run_to_pause(run_id)
    assert (await stack.decide(run_id, decision="approve")).status_code == 202
    return run_id


async def answer(stack: RuntimeStack, run_id: Any, place: int) -> None:
    pending = (await stack.view(run_id))["pending"]
    body = {"turnDigest": pending["turnDigest"], "answer": pending["question"]["options"][place]}
    response = await stack.request("POST", f"/v1/runs/{run_id}/answer", json=body)
    assert response.status_code == 202, response.text


@pytest.mark.req("S-61", "T-37", "T-09", "W-03")
async def test_what_was_written_in_scope_stands_and_the_run_waits(start_stack: StartStack) -> None:
    later = ("update_page_metadata", {"uid": 3, "title": "City museum"})
    model = ScriptedModel([asks(("ordered", WRITE), later, ("get_pagetree", {})), says("done")])
    async with start_stack(parts=parts(model)) as stack:
        run_id = await approved(stack, **PAGE_3, locale="de")
        run = await stack.run_to_pause(run_id)
        assert (run["status"], run["outcome"]) == ("waiting_for_input", "awaiting_input")
        assert run["pending"]["kind"] == "input"
        assert run["pending"]["question"]["question"] == "Der Lauf wartet auf: the printer"
        assert stack.store.rows.tables["tt_content"][5]["header"] == "When we open"
        kinds = [step["kind"] for step in await stack.steps(run_id)]
        assert kinds[-4:] == ["tool", "tool_write", "tool_changes", "status"]

        await answer(stack, run_id, 0)
        assert (await stack.run_to_pause(run_id))["status"] == "completed"
        told = [message.content for message in model.requests[-1].messages if message.role == "tool"]
        assert told[0].startswith("Saved: header")
        assert told[0].endswith("Es ist so weit")
        # The approval was given before the wait; what else it covered is held back, reading goes on.
        assert told[1].startswith("Error: ")
        assert not told[2].startswith("Error: ")
        assert stack.store.rows.tables["pages"][3]["title"] == "Museum"
        steps = await stack.steps(run_id)
        for kind, calls in (("tool", ["c1", "c2", "c3"]), ("tool_write", ["c1"]), ("tool_changes", ["c1"])):
            assert [step["callId"] for step in steps if step["kind"] == kind] == calls
        assert [step["sequence"] for step in steps] == list(range(1, len(steps) + 1))
        assert len(stack.store.applied) == 1


@pytest.mark.req("S-61", "S-74")
async def test_what_was_undone_waits_for_nothing(start_stack: StartStack) -> None:
    model = ScriptedModel([asks(("careless", WRITE)), says("done")])
    async with start_stack(parts=parts(model)) as stack:
        stack.store.rows.side_effects = [("tt_content", 9)]
        run_id = await approved(stack, **PAGE_3)
        assert (await stack.run_to_pause(run_id))["status"] == "completed"
        told = model.requests[-1].messages[-1].content
        assert told.startswith("Error: The whole call was undone")
        assert stack.store.rows.tables["tt_content"][5]["header"] == "Opening hours"
        (changes,) = await stack.steps(run_id, "tool_changes")
        assert changes["payload"]["changes"] == []
        # Control: the same call with nothing outside its scope waits.
        stack.store.rows.side_effects = []
        other = await approved(stack, **PAGE_3)
        assert (await stack.run_to_pause(other))["status"] == "waiting_for_input"


@pytest.mark.req("S-61", "C-11")
async def test_from_a_tool_that_declares_none_it_is_a_failure_that_names_what_stands(start_stack: StartStack) -> None:
    model = ScriptedModel([asks(("undeclared_dependency", WRITE)), says("done")])
    async with start_stack(parts=parts(model)) as stack:
        run_id = await approved(stack)
        assert (await stack.run_to_pause(run_id))["status"] == "completed"
        told = model.requests[-1].messages[-1].content
        assert told.startswith("Error: The tool failed.")
        assert "tt_content:5 updated" in told
        assert await stack.steps(run_id, "tool_write") == []


@pytest.mark.req("S-61", "T-23")
@pytest.mark.parametrize(("name", "status"), [("ordered", "waiting_for_input"), ("undeclared_dependency", "completed")])
async def test_it_waits_too_where_the_answer_was_found_after_a_crash(
    start_stack: StartStack, name: str, status: str
) -> None:
    model = ScriptedModel([asks((name, WRITE)), says("done")])
    async with start_stack(parts=parts(model), store_patience=0.0, backoff_base=0.0) as stack:
        run_id = await approved(stack)
        stack.store.fail("POST .*/apply", "lost")
        stack.store.fail("POST .*/resolve", "answer", status=503)
        run = await stack.run_to_pause(run_id)
        assert run["status"] == status
        assert sum(line.endswith("/apply") for line in stack.store.requests) == 1
        assert stack.store.rows.tables["tt_content"][5]["header"] == "When we open"
        assert len(await stack.steps(run_id, "tool_changes")) == 1
        if status == "waiting_for_input":
            await answer(stack, run_id, 1)
            assert (await stack.run_to_pause(run_id))["status"] == "completed"
            assert len(await stack.steps(run_id, "tool")) == 1


@pytest.mark.req("S-61", "T-03")
def test_a_question_and_a_dependency_at_once_are_not_registered() -> None:
    class Both(AskChoice):
        name: ClassVar[str] = "both"
        dependency: ClassVar[bool] = True

    with pytest.raises(ToolRegistrationError):
        ToolRegistry([Both()])
