"""The remit of a run in other hands: another worker, another state of the configuration, foreign tools (S-09, S-10, S-14)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import pytest
from agent_runtime.configurations.registry import ConfigurationRegistry
from agent_runtime.deps import build_runtime
from agent_runtime.tools.builtin import builtin_tools
from agent_runtime.tools.contracts import ClaimOperation, ScopedWrite, Tool, ToolArguments, ToolContext, ToolResult
from agent_runtime.tools.registry import ToolRegistry
from agent_runtime.worker import Worker
from remit_contracts.calls import ToolEffect
from remit_contracts.records import RecordReference
from remit_contracts.scope import AssignmentScope
from runtime_support.models import ScriptedModel, asks, says, source
from runtime_support.stack import RuntimeStack, StartStack
from sqlalchemy import text

SCOPE = {"pages": [{"page": 4, "depth": 7}], "records": [{"table": "tt_content", "uid": 5}], "languages": [0, 1]}
WRITE = ("update_content_element", {"uid": 9, "fields": {"header": "Novels"}})


def scripted(*replies: Any) -> dict[str, Any]:
    return {"models": source(ScriptedModel(replies))}


@asynccontextmanager
async def another_process(stack: RuntimeStack, configurations: Path | None = None) -> AsyncIterator[Worker]:
    """A worker that shares nothing with the stack but the database and the store."""
    settings = stack.runtime.settings
    registry = ConfigurationRegistry(configurations)
    runtime = build_runtime(settings, configurations=registry, **scripted(asks(WRITE), says("done")))
    try:
        yield Worker(runtime, "another")
    finally:
        await runtime.stop()


async def governance(stack: RuntimeStack) -> list[tuple[str, str | None]]:
    async with stack.runtime.database.read() as session:
        rows = await session.execute(
            text("SELECT call_id, reason FROM governance_log WHERE decision = 'invocation_denied' ORDER BY id")
        )
        return [(row.call_id, row.reason) for row in rows]


@pytest.mark.req("S-09", "S-11", "S-15", "T-23")
@pytest.mark.parametrize("scope", [SCOPE, None])
async def test_another_process_resumes_with_the_same_scope(
    start_stack: StartStack, scope: dict[str, Any] | None
) -> None:
    actor = {"assignmentScope": scope} if scope else {}
    async with start_stack(parts=scripted(asks(WRITE), says("done"))) as stack:
        run_id = await stack.start("go", actor=actor)
        async with another_process(stack) as suspends:
            assert await suspends.run_until_idle() == 1
        assert (await stack.decide(run_id, decision="approve")).status_code == 202
        async with another_process(stack) as resumes:
            assert await resumes.run_until_idle() == 1
        assert (await stack.view(run_id))["status"] == "completed"
        ((_, request),) = stack.store.applied
        expected = AssignmentScope.model_validate(scope) if scope else None
        assert request.actor.assignment_scope == expected
        assert (request.scope is None) == (scope is None)
        if request.scope is not None and expected is not None:
            assert request.scope.model_dump(include={"pages", "records", "tables", "languages"}) == (
                expected.model_dump(include={"pages", "records", "tables", "languages"})
            )
        # What the model is told is no part of it: the transcript knows no scope.
        assert stack.store.rows.tables["tt_content"][9]["header"] == "Novels"


async def damage(stack: RuntimeStack, run_id: UUID, value: str) -> None:
    async with stack.runtime.database.unit_of_work() as session:
        await session.execute(
            text(
                "UPDATE run SET actor = jsonb_set(actor::jsonb, '{assignmentScope}', :value ::jsonb)::json WHERE id = :id"
            ),
            {"id": run_id, "value": value},
        )


@pytest.mark.req("S-10", "S-20")
@pytest.mark.parametrize("value", ['"everything"', '{"pages": [{"page": "4"}]}', '{"folders": [4]}', "[]"])
async def test_a_scope_that_cannot_be_read_admits_nothing(start_stack: StartStack, value: str) -> None:
    async with start_stack(parts=scripted(asks(WRITE), says("done"))) as stack:
        run_id = await stack.start("go", actor={"assignmentScope": SCOPE})
        await stack.run_to_pause(run_id)
        assert (await stack.decide(run_id, decision="approve")).status_code == 202
        await damage(stack, run_id, value)
        async with another_process(stack) as resumes:
            await resumes.run_until_idle()
        (tool,) = await stack.steps(run_id, "tool")
        assert tool["payload"]["refusal"] == {"kind": "policy", "code": "assignment_scope"}
        assert not stack.store.applied
        assert await governance(stack) == [("c1", "outside_scope")]
        # A card of such a run cannot be approved either.
        other = await stack.start("go", actor={"assignmentScope": SCOPE})
        await stack.run_to_pause(other)
        await damage(stack, other, value)
        answer = await stack.decide(other, decision="approve")
        assert (answer.status_code, answer.json()["code"]) == (409, "turn_stale")
        assert answer.json()["pending"]["approveBlocked"] == "allRefused"


@pytest.mark.req("S-13", "S-14")
async def test_a_cap_lowered_while_the_run_waits_counts_in_the_process_that_resumes(
    start_stack: StartStack, tmp_path: Path
) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[configurations.capped]\nassignment_scope_max_depth = 5\n")
    parts = scripted(asks(WRITE), says("done"))
    async with start_stack(parts=parts, configurations=path) as stack:
        run_id = await stack.start("go", configuration="capped", actor={"assignmentScope": SCOPE})
        await stack.run_to_pause(run_id)
        stored = "SELECT actor #>> '{assignmentScope,pages,0,depth}' AS depth FROM run"
        await stack.decide(run_id, decision="approve")
        path.write_text("[configurations.capped]\nassignment_scope_max_depth = 1\nlabel = 'lowered'\n")
        async with another_process(stack, path) as resumes:
            await resumes.run_until_idle()
        ((_, request),) = stack.store.applied
        assert request.scope is not None
        assert [root.depth for root in request.scope.pages] == [1]
        # What was computed for the call is stored nowhere: the run still has what it was started with.
        assert request.actor.assignment_scope is not None
        assert [root.depth for root in request.actor.assignment_scope.pages] == [7]
        async with stack.runtime.database.read() as session:
            assert (await session.execute(text(stored))).scalar_one() == "7"


class AnyArguments(ToolArguments):
    uid: int = 9


class Foreign(Tool[AnyArguments]):
    """Stands for a tool of somebody else; it counts how often it really ran."""

    arguments: ClassVar[type[ToolArguments]] = AnyArguments
    description: ClassVar[str] = "a tool of somebody else"
    ran: ClassVar[list[str]] = []

    async def execute(self, arguments: AnyArguments, context: ToolContext) -> ToolResult:
        self.ran.append(self.name)
        return ToolResult("ran")


class Remote(Foreign):
    name: ClassVar[str] = "remote_agent"
    effect: ClassVar[ToolEffect] = ToolEffect.REMOTE

    def scoped_write(self, arguments: AnyArguments) -> ScopedWrite:
        # A remote tool may claim what it likes: nobody here can hold it to that.
        return ScopedWrite(ClaimOperation.UPDATE, records=(RecordReference(table="tt_content", uid=arguments.uid),))


class Undeclared(Foreign):
    name: ClassVar[str] = "undeclared"
    requires_approval: ClassVar[bool] = True


class Claiming(Undeclared):
    name: ClassVar[str] = "undeclared_with_claim"

    def scoped_write(self, arguments: AnyArguments) -> ScopedWrite:
        return ScopedWrite(ClaimOperation.UPDATE, records=(RecordReference(table="tt_content", uid=arguments.uid),))


class Upload(Undeclared):
    name: ClassVar[str] = "upload_file"

    def scoped_write(self, arguments: AnyArguments) -> ScopedWrite:
        target = RecordReference(table="tt_content", uid=arguments.uid)
        return ScopedWrite(ClaimOperation.CREATE, records=(target,), writes_files=True)


class Attach(Undeclared):
    name: ClassVar[str] = "attach_file"

    def scoped_write(self, arguments: AnyArguments) -> ScopedWrite:
        target = RecordReference(table="tt_content", uid=arguments.uid)
        return ScopedWrite(ClaimOperation.UPDATE, records=(target,), tables=("sys_file_reference",))


class Reader(Foreign):
    name: ClassVar[str] = "reader"
    effect: ClassVar[ToolEffect] = ToolEffect.READ


FOREIGN = (Remote(), Undeclared(), Claiming(), Upload(), Attach(), Reader())
TURN = asks(*((tool.name, {}) for tool in FOREIGN))
REFUSED = {
    "remote_agent": "scope_remote_write",
    "undeclared": "scope_unresolvable",
    "undeclared_with_claim": None,
    "upload_file": "scope_files_write",
    "attach_file": None,
}


@pytest.mark.req("S-20", "S-23", "S-25", "S-26", "S-27", "S-73", "S-76", "T-38", "T-50")
async def test_foreign_tools_under_a_scope_through_the_whole_loop(start_stack: StartStack) -> None:
    parts = {**scripted(TURN, says("done")), "registry": ToolRegistry([*builtin_tools(), *FOREIGN])}
    async with start_stack(parts=parts) as stack:
        for scope, refused in ((SCOPE, REFUSED), (None, dict.fromkeys(REFUSED))):
            Foreign.ran.clear()
            run_id = await stack.start("go", actor={"assignmentScope": scope} if scope else {})
            card = (await stack.run_to_pause(run_id))["pending"]
            found = {call["tool"]: (call["refusedByRule"] or {}).get("code") for call in card["calls"]}
            assert found == refused
            # Approved all the same: the second ask decides, and what it refuses never ran.
            assert (await stack.decide(run_id, decision="approve")).status_code == 202
            assert (await stack.run_to_pause(run_id))["status"] == "completed"
            assert Foreign.ran == [*(name for name, code in refused.items() if code is None), "reader"]
        assert await governance(stack) == [
            ("c1", "scope_remote_write"),
            ("c2", "scope_unresolvable"),
            ("c4", "scope_files_write"),
        ]
        assert not stack.store.applied


@pytest.mark.req("S-12", "S-14", "S-25", "S-26", "T-38")
async def test_foreign_tools_when_a_scope_becomes_required_while_they_wait(
    start_stack: StartStack, tmp_path: Path
) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[configurations.loose]\n")
    parts = {**scripted(TURN, says("done")), "registry": ToolRegistry([*builtin_tools(), *FOREIGN])}
    Foreign.ran.clear()
    async with start_stack(parts=parts, configurations=path) as stack:
        run_id = await stack.start("go", configuration="loose")
        await stack.run_to_pause(run_id)
        assert (await stack.decide(run_id, decision="approve")).status_code == 202
        path.write_text("[configurations.loose]\nrequire_assignment_scope = true\n")
        assert (await stack.run_to_pause(run_id))["status"] == "completed"
        assert Foreign.ran == ["reader"]
        assert [code for _, code in await governance(stack)] == ["scope_required"] * 5
