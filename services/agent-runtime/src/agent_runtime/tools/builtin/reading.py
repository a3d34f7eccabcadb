"""Tools that read: with the acting user's rights, in the run's workspace (T-62)."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar

from pydantic import Field
from remit_contracts.calls import ToolEffect
from remit_contracts.records import MAX_UID

from agent_runtime.tools.builtin.common import Uid
from agent_runtime.tools.contracts import NOT_FOUND, Tool, ToolArguments, ToolContext
from agent_runtime.tools.result import ToolResult

PAGE_FIELDS = ("uid", "pid", "title", "nav_title", "subtitle", "abstract", "description", "keywords", "hidden", "slug")
ELEMENT_FIELDS = ("uid", "pid", "CType", "colPos", "header", "subheader", "bodytext", "hidden", "sys_language_uid")
TEXT_LIMIT = 2000


def as_text(value: Any) -> str:
    """A result for the model: JSON, readable by a planner without AI as well."""
    return json.dumps(value, ensure_ascii=False, default=str)


def picked(row: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """Some columns of a row, long texts cut and marked."""
    shown: dict[str, Any] = {}
    for name in fields:
        if name not in row:
            continue
        value = row[name]
        if isinstance(value, str) and len(value) > TEXT_LIMIT:
            value = value[:TEXT_LIMIT] + " [cut]"
        shown[name] = value
    return shown


class PagetreeArguments(ToolArguments):
    """Where to begin and how deep."""

    root_uid: Annotated[int, Field(ge=0, le=MAX_UID, strict=True)] = 0
    depth: Annotated[int, Field(ge=1, le=10, strict=True)] = 3


class GetPagetree(Tool[PagetreeArguments]):
    """The page tree."""

    name: ClassVar[str] = "get_pagetree"
    description: ClassVar[str] = "List the pages below a page (rootUid 0 = everything you may see) down to a depth."
    arguments: ClassVar[type[ToolArguments]] = PagetreeArguments
    effect: ClassVar[ToolEffect] = ToolEffect.READ
    group: ClassVar[str] = "structure"

    async def execute(self, arguments: PagetreeArguments, context: ToolContext) -> ToolResult:
        """Pages with uid, parent, title, level."""
        pages = await context.reader.page_tree(arguments.root_uid, arguments.depth)
        keys = ("uid", "pid", "title", "hidden", "level", "slug", "hasChildren")
        return ToolResult(as_text({"pages": [{key: page[key] for key in keys if key in page} for page in pages]}))


class PageContentArguments(ToolArguments):
    """Which page, in which language (0 = default)."""

    uid: Uid
    language: Annotated[int, Field(ge=0, le=9999, strict=True)] = 0


class GetPageContent(Tool[PageContentArguments]):
    """A page with its content elements."""

    name: ClassVar[str] = "get_page_content"
    description: ClassVar[str] = "Read a page's own fields and its content elements in one language (0 = default)."
    arguments: ClassVar[type[ToolArguments]] = PageContentArguments
    effect: ClassVar[ToolEffect] = ToolEffect.READ

    async def execute(self, arguments: PageContentArguments, context: ToolContext) -> ToolResult:
        """The page, its translations and its elements in their order."""
        page = await context.reader.record("pages", arguments.uid)
        if page is None:
            return ToolResult.error(NOT_FOUND)
        elements = await context.reader.records("tt_content", pid=arguments.uid, language=arguments.language)
        return ToolResult(
            as_text(
                {
                    "page": picked(page.record, PAGE_FIELDS),
                    "translations": [
                        picked(row, ("uid", "title", "sys_language_uid", "hidden")) for row in page.translations
                    ],
                    "language": arguments.language,
                    "elements": [picked(row, ELEMENT_FIELDS) for row in elements],
                }
            )
        )


class NoArguments(ToolArguments):
    """Nothing to say."""


class ListLanguages(Tool[NoArguments]):
    """Languages of the sites."""

    name: ClassVar[str] = "list_languages"
    description: ClassVar[str] = "List the sites with their root page and languages (languageId, title, locale)."
    arguments: ClassVar[type[ToolArguments]] = NoArguments
    effect: ClassVar[ToolEffect] = ToolEffect.READ
    group: ClassVar[str] = "structure"

    async def execute(self, arguments: NoArguments, context: ToolContext) -> ToolResult:
        """Sites as the store names them."""
        return ToolResult(as_text({"sites": await context.reader.sites()}))


class RecordArguments(ToolArguments):
    """Which record."""

    table: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
    uid: Uid


class ReadRecord(Tool[RecordArguments]):
    """One record."""

    name: ClassVar[str] = "read_record"
    description: ClassVar[str] = "Read one record of a table with the fields you may see, and the page it lies on."
    arguments: ClassVar[type[ToolArguments]] = RecordArguments
    effect: ClassVar[ToolEffect] = ToolEffect.READ

    async def execute(self, arguments: RecordArguments, context: ToolContext) -> ToolResult:
        """The row as the acting user may see it."""
        stored = await context.reader.record(arguments.table, arguments.uid)
        if stored is None:
            return ToolResult.error(NOT_FOUND)
        return ToolResult(as_text({"record": picked(stored.record, tuple(stored.record)), "page": stored.page}))
