"""Moving one element or page."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field
from remit_contracts.calls import Cmdmap
from remit_contracts.records import WriteTarget
from remit_contracts.runs import AffectedRecord

from agent_runtime.tools.builtin.common import Uid, existing, expectation, label, page_label, read, reference
from agent_runtime.tools.builtin.create_content import ANCHOR_ELSEWHERE
from agent_runtime.tools.contracts import (
    ClaimOperation,
    PageTarget,
    Plan,
    PlanRefused,
    ReadBack,
    ScopedWrite,
    StoredRecord,
    ToolArguments,
    ToolContext,
    WriteTool,
)


class MoveContentArguments(ToolArguments):
    """The element, its page, and optionally column and the element it goes after."""

    uid: Uid
    target_page: Uid
    column: Annotated[int, Field(ge=0, le=9999, strict=True)] | None = None
    after_content_uid: Uid | None = None


class MoveContentElement(WriteTool[MoveContentArguments]):
    """Another place for an element."""

    name: ClassVar[str] = "move_content_element"
    description: ClassVar[str] = (
        "Move one content element to a page, to the top of a column or after another element of that page."
    )
    arguments: ClassVar[type[ToolArguments]] = MoveContentArguments

    def scoped_write(self, arguments: MoveContentArguments) -> ScopedWrite:
        """Element, destination, anchor (S-29)."""
        records = [reference("tt_content", arguments.uid)]
        if arguments.after_content_uid:
            records.append(reference("tt_content", arguments.after_content_uid))
        return ScopedWrite(
            ClaimOperation.MOVE, records=tuple(records), pages=(PageTarget(arguments.target_page, "tt_content"),)
        )

    async def plan(self, arguments: MoveContentArguments, context: ToolContext) -> Plan:
        """From where to where."""
        stored = await existing(context, "tt_content", arguments.uid)
        page = await existing(context, "pages", arguments.target_page)
        column = stored.number("colPos") if arguments.column is None else arguments.column
        place = arguments.target_page
        anchor: StoredRecord | None = None
        if arguments.after_content_uid == arguments.uid:
            raise PlanRefused("An element cannot be put after itself. Nothing was changed.")
        if arguments.after_content_uid:
            anchor = await existing(context, "tt_content", arguments.after_content_uid)
            language = stored.number("sys_language_uid")
            if (anchor.number("pid"), anchor.number("sys_language_uid")) != (arguments.target_page, language):
                raise PlanRefused(ANCHOR_ELSEWHERE)
            column = anchor.number("colPos") if arguments.column is None else column
            place = -arguments.after_content_uid
        # An editor without a right on the column may still move within it, so it is written only when it changes.
        update = {} if column == stored.number("colPos") else {"colPos": column}
        command = {"action": "paste", "target": place, "update": update}
        expects = expectation("tt_content", stored)
        return Plan(
            operations=(
                *expects,
                Cmdmap(cmdmap={"tt_content": {str(arguments.uid): {"move": command}}}),
                read("tt_content", arguments.uid, ["pid", "colPos"]),
            ),
            target=WriteTarget(table="tt_content", uid=arguments.uid),
            lines=(
                context.say("Content element {element}", element=label("tt_content", stored)),
                context.say(
                    "From: page {page}, column {column}", page=page_label(stored), column=stored.number("colPos")
                ),
                _destination(context, label("pages", page), column, anchor),
            ),
            affected=AffectedRecord(table="tt_content", uid=arguments.uid, fields=("colPos", "pid", "sorting")),
            read_back=(
                ReadBack(
                    operation=len(expects) + 1,
                    table="tt_content",
                    record=str(arguments.uid),
                    expected={"pid": arguments.target_page, **update},
                ),
            ),
            success=f"Moved {label('tt_content', stored)} to page {label('pages', page)}.",
            touches=(reference("tt_content", arguments.uid),),
        )


def _destination(context: ToolContext, page: str, column: int, anchor: StoredRecord | None) -> str:
    if anchor is None:
        return context.say("To: page {page}, column {column}, first", page=page, column=column)
    after = label("tt_content", anchor)
    return context.say("To: page {page}, column {column}, after {anchor}", page=page, column=column, anchor=after)


class MovePageArguments(ToolArguments):
    """The page, its new parent, and optionally the page it goes after."""

    uid: Uid
    parent: Uid
    after_page_uid: Uid | None = None


class MovePage(WriteTool[MovePageArguments]):
    """Another place for a page; its subpages move along."""

    name: ClassVar[str] = "move_page"
    description: ClassVar[str] = "Move one page below another page, first or after a page there. Subpages move along."
    arguments: ClassVar[type[ToolArguments]] = MovePageArguments

    def scoped_write(self, arguments: MovePageArguments) -> ScopedWrite:
        """Page with its subtree, destination, anchor (S-29, S-82)."""
        records = [reference("pages", arguments.uid)]
        if arguments.after_page_uid:
            records.append(reference("pages", arguments.after_page_uid))
        return ScopedWrite(
            ClaimOperation.MOVE,
            records=tuple(records),
            pages=(PageTarget(arguments.parent, "pages"),),
            subtree=True,
        )

    async def plan(self, arguments: MovePageArguments, context: ToolContext) -> Plan:
        """From where to where; no translation, not into itself."""
        if arguments.uid in {arguments.parent, arguments.after_page_uid}:
            raise PlanRefused("A page cannot be put below or after itself. Nothing was changed.")
        stored = await existing(context, "pages", arguments.uid)
        parent = await existing(context, "pages", arguments.parent)
        if stored.number("sys_language_uid") or parent.number("sys_language_uid"):
            raise PlanRefused("A translation of a page cannot be moved; move the page itself. Nothing was changed.")
        place, to = arguments.parent, context.say("To: below {page}, first", page=label("pages", parent))
        if arguments.after_page_uid:
            anchor = await existing(context, "pages", arguments.after_page_uid)
            if anchor.number("pid") != arguments.parent:
                raise PlanRefused("The page to put it after does not lie below that parent. Nothing was changed.")
            after = label("pages", anchor)
            to = context.say("To: below {page}, after {anchor}", page=label("pages", parent), anchor=after)
            place = -arguments.after_page_uid
        expects = expectation("pages", stored)
        return Plan(
            operations=(
                *expects,
                Cmdmap(cmdmap={"pages": {str(arguments.uid): {"move": place}}}),
                read("pages", arguments.uid, ["pid"]),
            ),
            target=WriteTarget(table="pages", uid=arguments.uid),
            lines=(
                context.say("Page {page}", page=label("pages", stored)),
                context.say("From: below pages:{uid}", uid=stored.number("pid")),
                to,
                context.say("Its subpages move along."),
            ),
            affected=AffectedRecord(table="pages", uid=arguments.uid, fields=("pid", "sorting")),
            read_back=(
                ReadBack(
                    operation=len(expects) + 1,
                    table="pages",
                    record=str(arguments.uid),
                    expected={"pid": arguments.parent},
                ),
            ),
            success=f"Moved page {label('pages', stored)} below {label('pages', parent)}.",
            touches=(reference("pages", arguments.uid),),
        )
