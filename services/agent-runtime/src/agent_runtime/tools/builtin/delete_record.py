"""Deleting one record, recoverable."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit_contracts.calls import Cmdmap
from remit_contracts.records import WriteTarget
from remit_contracts.runs import AffectedRecord

from agent_runtime.tools.builtin.common import Uid, existing, expectation, label, page_label, read, reference
from agent_runtime.tools.contracts import (
    ClaimOperation,
    Plan,
    PlanRefused,
    ReadBack,
    ScopedWrite,
    ToolArguments,
    ToolContext,
    WriteTool,
)


class DeleteArguments(ToolArguments):
    """The record; subpages go along only when that is said."""

    table: Literal["pages", "tt_content"]
    uid: Uid
    include_subpages: bool = False


class DeleteRecord(WriteTool[DeleteArguments]):
    """Delete a page or a content element."""

    name: ClassVar[str] = "delete_record"
    description: ClassVar[str] = (
        "Delete one content element or one page with what lies on it. A page with subpages needs includeSubpages."
    )
    arguments: ClassVar[type[ToolArguments]] = DeleteArguments

    def scoped_write(self, arguments: DeleteArguments) -> ScopedWrite:
        """The record, of a page its subtree (S-29, S-39)."""
        return ScopedWrite(
            ClaimOperation.DELETE,
            records=(reference(arguments.table, arguments.uid),),
            subtree=arguments.table == "pages",
        )

    async def plan(self, arguments: DeleteArguments, context: ToolContext) -> Plan:
        """What is deleted, with the number of subpages."""
        table = arguments.table
        stored = await existing(context, table, arguments.uid)
        if table == "pages" and stored.number("is_siteroot"):
            raise PlanRefused("The root page of a site is not deleted here. Nothing was changed.")
        lines = [context.say("Delete {record}", record=label(table, stored))]
        if table == "pages":
            below = [
                page for page in await context.reader.page_tree(arguments.uid, 10) if page.get("uid") != arguments.uid
            ]
            if below and not arguments.include_subpages:
                raise PlanRefused(
                    "The page has {count} subpages; say includeSubpages to delete them too. Nothing was changed.",
                    count=len(below),
                )
            lines.append(context.say("With its content and {count} subpages.", count=len(below)))
        else:
            lines.append(context.say("On page {page}", page=page_label(stored)))
        expects = expectation(table, stored)
        return Plan(
            operations=(
                *expects,
                Cmdmap(cmdmap={table: {str(arguments.uid): {"delete": 1}}}),
                read(table, arguments.uid, ["deleted"]),
            ),
            target=WriteTarget(table=table, uid=arguments.uid),
            lines=tuple(lines),
            affected=AffectedRecord(table=table, uid=arguments.uid),
            read_back=(
                ReadBack(operation=len(expects) + 1, table=table, record=str(arguments.uid), expected={"deleted": 1}),
            ),
            success=f"Deleted {label(table, stored)}. It can be restored.",
            touches=(reference(table, arguments.uid),),
            deletes=True,
        )
