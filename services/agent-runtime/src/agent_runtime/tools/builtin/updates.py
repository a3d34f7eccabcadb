"""Writers that change fields of one record: page metadata, content elements."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field
from remit_contracts.calls import Datamap
from remit_contracts.records import WriteTarget
from remit_contracts.runs import AffectedRecord, FieldPreview

from agent_runtime.tools.builtin.common import Uid, excerpt, existing, expectation, label, page_label, read, reference
from agent_runtime.tools.contracts import (
    ClaimOperation,
    Plan,
    PlanRefused,
    ReadBack,
    ScopedWrite,
    StoredRecord,
    ToolArguments,
    ToolContext,
    WriteTool,
)

Text = Annotated[str, Field(max_length=2000)]
NOTHING_GIVEN = "No field was given, so there is nothing to change."
ELEMENT_TEXT_FIELDS = frozenset({"header", "subheader", "bodytext", "header_link", "rowDescription"})


class PageMetadataArguments(ToolArguments):
    """The page and the fields to set; an empty text clears a field, an omitted one stays."""

    uid: Uid
    title: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    subtitle: Text | None = None
    nav_title: Text | None = Field(default=None, alias="nav_title")
    abstract: Text | None = None
    description: Text | None = None
    keywords: Text | None = None
    seo_title: Text | None = Field(default=None, alias="seo_title")
    og_title: Text | None = Field(default=None, alias="og_title")
    og_description: Text | None = Field(default=None, alias="og_description")
    twitter_title: Text | None = Field(default=None, alias="twitter_title")
    twitter_description: Text | None = Field(default=None, alias="twitter_description")


def field_update(table: str, stored: StoredRecord, values: dict[str, Any], headline: str, context: ToolContext) -> Plan:
    """A plan that sets fields of one row: expects it unchanged, writes, reads it back."""
    uid = stored.number("uid")
    lines = [headline]
    for name, value in values.items():
        old, new = stored.text(name), str(value)
        same = context.say("{field}: unchanged", field=name)
        lines.append(same if old == new else f"{name}: {excerpt(old)} → {excerpt(new)}")
    expects = expectation(table, stored)
    operations = [
        *expects,
        Datamap(datamap={table: {str(uid): dict(values)}}),
        read(table, uid, list(values)),
    ]
    return Plan(
        operations=tuple(operations),
        target=WriteTarget(table=table, uid=uid),
        lines=tuple(lines),
        structured=tuple(
            FieldPreview(field=name, current=stored.text(name), proposed=str(value)) for name, value in values.items()
        ),
        affected=AffectedRecord(table=table, uid=uid, fields=tuple(sorted(values))),
        read_back=(ReadBack(operation=len(expects) + 1, table=table, record=str(uid), expected=values),),
        success=f"Saved: {', '.join(values)} of {label(table, stored)}.",
        touches=(reference(table, uid),),
    )


class UpdatePageMetadata(WriteTool[PageMetadataArguments]):
    """Title and metadata of a page."""

    name: ClassVar[str] = "update_page_metadata"
    description: ClassVar[str] = "Set the title or other metadata of one page. Only the fields you name are written."
    arguments: ClassVar[type[ToolArguments]] = PageMetadataArguments

    def scoped_write(self, arguments: PageMetadataArguments) -> ScopedWrite:
        """The page."""
        return ScopedWrite(ClaimOperation.UPDATE, records=(reference("pages", arguments.uid),))

    async def plan(self, arguments: PageMetadataArguments, context: ToolContext) -> Plan:
        """Old and new value of every field given."""
        values = {name: value for name, value in arguments.given().items() if name != "uid" and value is not None}
        if not values:
            raise PlanRefused(NOTHING_GIVEN)
        stored = await existing(context, "pages", arguments.uid)
        counted = "Page {page}: {count} fields" if len(values) > 1 else "Page {page}: 1 field"
        headline = context.say(counted, page=label("pages", stored), count=len(values))
        return field_update("pages", stored, values, headline, context)


class ContentElementArguments(ToolArguments):
    """The element and its new values."""

    uid: Uid
    fields: Annotated[dict[str, str | int], Field(min_length=1, max_length=20)]


class UpdateContentElement(WriteTool[ContentElementArguments]):
    """Fields of a content element."""

    name: ClassVar[str] = "update_content_element"
    description: ClassVar[str] = (
        "Set fields of one content element, e.g. header, subheader, bodytext. Its place, language and visibility "
        "cannot be changed here."
    )
    arguments: ClassVar[type[ToolArguments]] = ContentElementArguments

    def scoped_write(self, arguments: ContentElementArguments) -> ScopedWrite:
        """The element."""
        return ScopedWrite(ClaimOperation.UPDATE, records=(reference("tt_content", arguments.uid),))

    async def plan(self, arguments: ContentElementArguments, context: ToolContext) -> Plan:
        """Old and new value of every field given."""
        other = sorted(set(arguments.fields) - ELEMENT_TEXT_FIELDS)
        if other:
            raise PlanRefused(
                "This tool writes only {allowed}; not {given}. Nothing was changed.",
                allowed=", ".join(sorted(ELEMENT_TEXT_FIELDS)),
                given=", ".join(other)[:200],
            )
        stored = await existing(context, "tt_content", arguments.uid)
        headline = context.say(
            "Content element {element} on page {page}", element=label("tt_content", stored), page=page_label(stored)
        )
        return field_update("tt_content", stored, dict(arguments.fields), headline, context)
