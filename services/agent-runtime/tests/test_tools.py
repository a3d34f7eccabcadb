"""Built-in tools: declared, through the real loop, read back (T-60, T-61, S-21, W-01 to W-05)."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import pytest
from agent_runtime.questions.ask_choice import AskChoice
from agent_runtime.tools.builtin import builtin_tools
from agent_runtime.tools.contracts import Tool, ToolArgumentError, ToolArguments, ToolContext, WriteTool
from agent_runtime.tools.registry import ToolRegistrationError, ToolRegistry, read_arguments
from agent_runtime.tools.result import CUT_MARK, ToolResult, bounded_text
from hypothesis import given
from hypothesis import strategies as st
from remit_contracts.calls import ToolEffect
from remit_contracts.records import RecordReference
from remit_contracts.steps import Refusal, RefusalKind, WriteCompleteness
from runtime_support.models import ScriptedModel, asks, says, source
from runtime_support.stack import RuntimeStack, StartStack

# One usable call of every declared write tool; a new write tool without one fails the coverage test.
CALLS: dict[str, dict[str, Any]] = {
    "update_page_metadata": {"uid": 3, "title": "City museum"},
    "update_content_element": {"uid": 5, "fields": {"header": "When we open"}},
    "create_content_element_draft": {"page": 3, "bodytext": "New"},
    "create_translation_draft": {"table": "tt_content", "uid": 5, "language": 1},
    "move_content_element": {"uid": 5, "targetPage": 4, "afterContentUid": 9},
    "move_page": {"uid": 3, "parent": 4},
    "copy_record": {"table": "tt_content", "uid": 5, "targetPage": 4},
    "delete_record": {"table": "tt_content", "uid": 5},
    "clear_cache": {},
}
EXPECTED: dict[str, tuple[str, int] | None] = {
    "update_page_metadata": ("pages", 3),
    "update_content_element": ("tt_content", 5),
    "create_content_element_draft": ("tt_content", 1000),
    "create_translation_draft": ("tt_content", 1000),
    "move_content_element": ("tt_content", 5),
    "move_page": ("pages", 3),
    "copy_record": ("tt_content", 1000),
    "delete_record": ("tt_content", 5),
    "clear_cache": None,
}
WRITERS = sorted(tool.name for tool in builtin_tools() if tool.effect is ToolEffect.WRITE)


@pytest.mark.req("S-21", "W-02", "T-61")
def test_every_write_tool_states_its_claim() -> None:
    assert sorted(CALLS) == WRITERS
    for tool in builtin_tools():
        assert tool.effect is not ToolEffect.UNDECLARED
        if tool.effect is not ToolEffect.WRITE:
            assert not isinstance(tool, WriteTool)
            continue
        claim = tool.scoped_write(read_arguments(tool, CALLS[tool.name]))
        assert claim is not None
        assert not claim.empty


async def carried_out(stack: RuntimeStack, name: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    run_id = await stack.start("one")
    card = (await stack.run_to_pause(run_id))["pending"]
    assert card["calls"][0]["previewLines"]
    assert (await stack.decide(run_id, decision="approve")).status_code == 202
    assert (await stack.run_to_pause(run_id))["status"] == "completed"
    return await stack.steps(run_id)


@pytest.mark.req("W-01", "W-02", "W-03", "W-04", "T-61")
@pytest.mark.parametrize("name", WRITERS)
async def test_a_write_tool_through_the_loop_names_its_record(start_stack: StartStack, name: str) -> None:
    model = ScriptedModel([asks((name, CALLS[name])), says("done")])
    async with start_stack(parts={"models": source(model)}) as stack:
        steps = await carried_out(stack, name, CALLS[name])
        (tool,) = [step for step in steps if step["kind"] == "tool"]
        assert not tool["payload"]["isError"], model.requests[-1].messages[-1].content
        writes = [step["payload"] for step in steps if step["kind"] == "tool_write"]
        named = [(write["table"], write["uid"]) for write in writes]
        expected = EXPECTED[name]
        assert named == ([expected] if expected else [])
        assert all(write["completeness"] == "complete" for write in writes)
        created = stack.store.rows.tables["tt_content"].get(1000)
        if expected and expected[1] == 1000:
            assert created is not None
            assert created["hidden"] == 1


@pytest.mark.req("T-61", "T-07", "W-05")
@pytest.mark.parametrize("name", [name for name in WRITERS if name != "clear_cache"])
async def test_missing_and_forbidden_read_alike_and_ask_nobody(start_stack: StartStack, name: str) -> None:
    record = "page" if "page" in CALLS[name] else "uid"
    missing = {**CALLS[name], record: 777}
    model = ScriptedModel([asks((name, missing), (name, CALLS[name])), says("done")])
    async with start_stack(parts={"models": source(model)}) as stack:
        table = str(CALLS[name].get("table", "pages" if "page" in name and "content" not in name else "tt_content"))
        table = "pages" if record == "page" else table
        stack.store.rows.forbidden.add((table, CALLS[name][record], 7))
        run_id = await stack.start("one")
        assert (await stack.run_to_pause(run_id))["status"] == "completed"
        told = [message.content for message in model.requests[-1].messages if message.role == "tool"]
        assert told[0] == told[1]
        assert told[0].startswith("Error: ")
        assert not stack.store.applied


@pytest.mark.req("T-61", "S-16")
@pytest.mark.parametrize("name", WRITERS)
def test_unknown_arguments_are_refused_as_a_whole(name: str) -> None:
    tool = next(tool for tool in builtin_tools() if tool.name == name)
    with pytest.raises(ToolArgumentError) as refused:
        read_arguments(tool, {**CALLS[name], "scope": "secret value"})
    assert "scope" in refused.value.text
    assert "secret value" not in refused.value.text
    for nonsense in ("text", None, [1], {"uid": "3"}, {"uid": -1}, {"uid": 2**63}, {"uid": True}):
        if nonsense == {} or name == "clear_cache":
            continue
        with pytest.raises(ToolArgumentError):
            read_arguments(tool, nonsense)


@pytest.mark.req("T-61", "C-11", "W-05")
async def test_success_is_claimed_only_on_a_match(start_stack: StartStack) -> None:
    model = ScriptedModel([asks(("update_page_metadata", CALLS["update_page_metadata"])), says("done")])
    async with start_stack(parts={"models": source(model)}) as stack:
        run_id = await stack.start("one")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        # A store that drops the field silently, as a missing right on it would.
        stack.store.rows.dropped_fields.add("title")
        await stack.run_to_pause(run_id)
        (tool,) = await stack.steps(run_id, "tool")
        assert tool["payload"]["isError"]
        assert await stack.steps(run_id, "tool_write") == []
        (changes,) = await stack.steps(run_id, "tool_changes")
        assert changes["payload"]["changes"][0]["uid"] == 3
        told = model.requests[-1].messages[-1].content
        assert "title" in told
        assert "pages:3 updated" in told


@pytest.mark.req("T-61", "T-07")
async def test_a_row_that_changed_since_the_approval_is_left_alone(start_stack: StartStack) -> None:
    model = ScriptedModel([asks(("update_page_metadata", CALLS["update_page_metadata"])), says("done")])
    async with start_stack(parts={"models": source(model)}) as stack:
        run_id = await stack.start("one")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        stack.store.rows.tables["pages"][3]["subtitle"] = "somebody else's"
        await stack.run_to_pause(run_id)
        assert stack.store.rows.tables["pages"][3]["title"] == "Museum"
        assert "changed by somebody else" in model.requests[-1].messages[-1].content


async def test_two_calls_on_one_record_do_not_trip_over_each_other(start_stack: StartStack) -> None:
    turn = asks(
        ("update_content_element", {"uid": 5, "fields": {"header": "A"}}),
        ("update_content_element", {"uid": 5, "fields": {"bodytext": "B"}}),
        ("move_content_element", {"uid": 5, "targetPage": 4}),
    )
    async with start_stack(parts={"models": source(ScriptedModel([turn, says("done")]))}) as stack:
        run_id = await stack.start("three")
        card = (await stack.run_to_pause(run_id))["pending"]
        assert [call["rehearsal"]["outcome"] for call in card["calls"]] == ["committed"] * 3
        await stack.decide(run_id, decision="approve")
        await stack.run_to_pause(run_id)
        assert [step["payload"]["isError"] for step in await stack.steps(run_id, "tool")] == [False] * 3
        row = stack.store.rows.tables["tt_content"][5]
        assert (row["header"], row["bodytext"], row["pid"]) == ("A", "B", 4)


@pytest.mark.req("S-43", "S-70", "S-71", "C-11", "S-66")
async def test_what_the_store_stopped_is_named_and_what_stands_too(start_stack: StartStack) -> None:
    model = ScriptedModel([asks(("update_content_element", CALLS["update_content_element"])), says("done")])
    async with start_stack(parts={"models": source(model)}) as stack:
        stack.store.rows.refuse_beside = ("tt_content", 9)
        run_id = await stack.start("one", actor={"assignmentScope": {"pages": [{"page": 3}]}})
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        await stack.run_to_pause(run_id)
        told = model.requests[-1].messages[-1].content
        assert told.startswith("Error: ")
        assert "tt_content:9 (outside_scope)" in told
        assert "page 3" in told
        assert "tt_content:5 updated" in told
        assert await stack.steps(run_id, "tool_write") == []
        (changes,) = await stack.steps(run_id, "tool_changes")
        assert [change["uid"] for change in changes["payload"]["changes"]] == [5]
        assert [item["uid"] for item in changes["payload"]["refused"]] == [9]


@pytest.mark.req("S-74", "S-75", "S-70")
async def test_an_undone_call_names_nothing_as_changed(start_stack: StartStack) -> None:
    model = ScriptedModel([asks(("update_content_element", CALLS["update_content_element"])), says("done")])
    async with start_stack(parts={"models": source(model)}) as stack:
        run_id = await stack.start("one", actor={"assignmentScope": {"pages": [{"page": 3}]}})
        stack.store.rows.side_effects = [("tt_content", 9)]
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        await stack.run_to_pause(run_id)
        told = model.requests[-1].messages[-1].content
        assert told.startswith("Error: The whole call was undone")
        assert "updated" not in told
        assert stack.store.rows.tables["tt_content"][5]["header"] == "Opening hours"
        (tool,) = await stack.steps(run_id, "tool")
        assert tool["payload"]["isError"]
        (changes,) = await stack.steps(run_id, "tool_changes")
        assert changes["payload"]["changes"] == []
        assert [(item["uid"], item["undone"]) for item in changes["payload"]["refused"]] == [(9, True)]


class Nothing(ToolArguments):
    pass


class Raises(Tool[Nothing]):
    name: ClassVar[str] = "raises"
    description: ClassVar[str] = "raises"
    arguments: ClassVar[type[ToolArguments]] = Nothing
    effect: ClassVar[ToolEffect] = ToolEffect.READ

    async def execute(self, arguments: Nothing, context: ToolContext) -> ToolResult:
        raise RuntimeError("a secret of the tool")


@pytest.mark.req("T-06", "T-07", "T-08", "T-04")
async def test_what_goes_wrong_reads_as_an_error_and_tells_nothing(start_stack: StartStack) -> None:
    model = ScriptedModel([asks(("raises", {}), ("no_such_tool", {}), ("get_pagetree", {"depth": 99})), says("done")])
    registry = ToolRegistry([*builtin_tools(), Raises()])
    async with start_stack(parts={"models": source(model), "registry": registry}) as stack:
        run_id = await stack.start("one")
        await stack.run_to_pause(run_id)
        told = [message.content for message in model.requests[-1].messages if message.role == "tool"]
        assert all(content.startswith("Error: ") for content in told)
        assert "secret" not in "".join(told)
        steps = await stack.steps(run_id, "tool")
        assert steps[1]["payload"]["refusal"] == {"kind": "policy", "code": "unknown_tool"}
        assert all(step["durationMs"] > 0.0 for step in steps)


@pytest.mark.req("T-51", "T-08")
async def test_a_tool_that_goes_while_the_run_waits_is_not_permitted(start_stack: StartStack) -> None:
    model = ScriptedModel([asks(("update_page_metadata", CALLS["update_page_metadata"])), says("done")])
    async with start_stack(parts={"models": source(model)}) as stack:
        run_id = await stack.start("one")
        await stack.run_to_pause(run_id)
        await stack.decide(run_id, decision="approve")
        stack.runtime.gate._disabled = frozenset({"update_page_metadata"})
        await stack.run_to_pause(run_id)
        (tool,) = await stack.steps(run_id, "tool")
        assert (tool["payload"]["refusal"]["kind"], tool["durationMs"]) == ("not_permitted", 0.0)
        assert not stack.store.applied
        # Not on offer at all: the model's call is a policy refusal, with its time.
        other = await stack.start("one")
        await stack.run_to_pause(other)
        (tool,) = await stack.steps(other, "tool")
        assert tool["payload"]["refusal"] == {"kind": "policy", "code": "not_permitted"}
        assert tool["durationMs"] > 0.0


class BothWays(AskChoice):
    name: ClassVar[str] = "both"
    requires_approval: ClassVar[bool] = True


class WritesWithoutPlan(Raises):
    name: ClassVar[str] = "planless"
    effect: ClassVar[ToolEffect] = ToolEffect.WRITE


@pytest.mark.req("T-03")
def test_what_may_not_be_registered() -> None:
    registry = ToolRegistry(builtin_tools())
    for wrong in (BothWays(), WritesWithoutPlan(), Raises.__new__(Raises), builtin_tools()[0]):
        if isinstance(wrong, Raises) and not isinstance(wrong, WritesWithoutPlan):
            registry.register(wrong)
        with pytest.raises(ToolRegistrationError):
            registry.register(wrong)


FULL = ToolResult(
    content="x" * 100,
    is_error=False,
    artifacts=({"type": "text", "text": "y" * 100},),
    write_target=RecordReference(table="pages", uid=3),
    completeness=WriteCompleteness.PARTIAL,
    hook_failed_after_write=True,
    refusal=Refusal(kind=RefusalKind.HELD),
)


@pytest.mark.req("W-04", "T-05")
def test_every_property_survives_the_way_through_the_loop() -> None:
    passed = FULL.with_bounded_channels(50, 1000).with_hook_failure(False).with_sentence("more")
    for field in dataclasses.fields(ToolResult):
        if field.name == "content":
            assert passed.content.endswith("more")
            continue
        assert getattr(passed, field.name) == getattr(FULL, field.name), field.name
    assert FULL.with_bounded_channels(50, 10).artifacts == (
        {"type": "text", "text": "The material was left out: it is too large."},
    )
    failed = FULL.as_error("because")
    assert (failed.write_target, failed.artifacts, failed.is_error) == (None, (), True)


@pytest.mark.req("T-05")
@given(st.text(), st.integers(min_value=40, max_value=200))
def test_a_bounded_text_is_valid_and_within_its_bytes(text: str, limit: int) -> None:
    cut = bounded_text(text, limit)
    assert len(cut.encode()) <= limit
    if len(text.encode("utf-8", "replace")) > limit:
        assert cut.endswith(CUT_MARK)
