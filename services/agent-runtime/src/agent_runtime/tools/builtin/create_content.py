"""A new content element, created hidden (T-61)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from remit_contracts.calls import Datamap
from remit_contracts.records import WriteTarget
from remit_contracts.runs import AffectedRecord, FieldPreview

from agent_runtime.tools.builtin.common import NEW, Uid, excerpt, existing, label, read, reference
from agent_runtime.tools.contracts import (
    ClaimOperation,
    PageTarget,
    Plan,
    PlanRefused,
    ReadBack,
    ScopedWrite,
    ToolArguments,
    ToolContext,
    WriteTool,
)

ANCHOR_ELSEWHERE = "The element to put it after does not lie on that page in that language. Nothing was changed."


class CreateContentArguments(ToolArguments):
    """Where the element goes and what is in it."""

    page: Uid
    type: Literal["header", "text", "textmedia", "bullets"] = "text"
    header: Annotated[str, Field(max_length=255)] = ""
    bodytext: Annotated[str, Field(max_length=20_000)] = ""
    column: Annotated[int, Field(ge=0, le=9999, strict=True)] = 0
    language: Annotated[int, Field(ge=0, le=9999, strict=True)] = 0
    after_content_uid: Uid | None = None


class CreateContentElementDraft(WriteTool[CreateContentArguments]):
    """A hidden content element."""

    name: ClassVar[str] = "create_content_element_draft"
    description: ClassVar[str] = (
        "Create one content element on a page. It is created hidden; a person must unhide it. "
        "afterContentUid puts it after another element, else it becomes the first of its column."
    )
    arguments: ClassVar[type[ToolArguments]] = CreateContentArguments

    def scoped_write(self, arguments: CreateContentArguments) -> ScopedWrite:
        """The page, and the anchor as a record (S-22)."""
        anchor = (reference("tt_content", arguments.after_content_uid),) if arguments.after_content_uid else ()
        return ScopedWrite(
            ClaimOperation.CREATE,
            records=anchor,
            pages=(PageTarget(arguments.page, "tt_content"),),
            language=arguments.language,
        )

    async def plan(self, arguments: CreateContentArguments, context: ToolContext) -> Plan:
        """Page, position and texts; hidden."""
        if not arguments.header and not arguments.bodytext:
            raise PlanRefused("Neither a header nor a text was given. Nothing was changed.")
        page = await existing(context, "pages", arguments.page)
        position = context.say("Position: column {column}, first", column=arguments.column)
        place = arguments.page
        if arguments.after_content_uid:
            anchor = await existing(context, "tt_content", arguments.after_content_uid)
            same = (anchor.number("pid"), anchor.number("sys_language_uid")) == (arguments.page, arguments.language)
            if not same:
                raise PlanRefused(ANCHOR_ELSEWHERE)
            position = context.say("Position: after {anchor}", anchor=label("tt_content", anchor))
            place = -arguments.after_content_uid
        values: dict[str, Any] = {
            "CType": arguments.type,
            "header": arguments.header,
            "bodytext": arguments.bodytext,
            "colPos": arguments.column,
            "sys_language_uid": arguments.language,
            "hidden": 1,
        }
        headline = context.say(
            "New content element ({type}) on page {page}", type=arguments.type, page=label("pages", page)
        )
        lines = [headline, position]
        lines += [f"{name}: {excerpt(values[name])}" for name in ("header", "bodytext") if values[name]]
        if arguments.language:
            lines.append(context.say("Language: {language}", language=arguments.language))
        lines.append(context.say("It is created hidden."))
        return Plan(
            operations=(
                Datamap(datamap={"tt_content": {NEW: {"pid": place, **values}}}),
                read("tt_content", NEW, ["pid", *values]),
            ),
            target=WriteTarget(table="tt_content", uid=NEW),
            lines=tuple(lines),
            structured=tuple(
                FieldPreview(field=name, proposed=str(values[name])) for name in ("header", "bodytext") if values[name]
            ),
            affected=AffectedRecord(table="tt_content", fields=tuple(sorted(values))),
            read_back=(
                ReadBack(operation=1, table="tt_content", record=NEW, expected={"pid": arguments.page, **values}),
            ),
            success=f"Created tt_content:{{uid}} on page {label('pages', page)}. It is hidden; a person must unhide it.",
        )
