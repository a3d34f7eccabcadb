"""Writers that make a record out of another one: translation draft, copy."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from remit_contracts.calls import Cmdmap, Expect
from remit_contracts.records import WriteTarget
from remit_contracts.runs import AffectedRecord

from agent_runtime.tools.builtin.common import Uid, existing, expectation, label, reference
from agent_runtime.tools.builtin.create_content import ANCHOR_ELSEWHERE
from agent_runtime.tools.contracts import (
    ClaimOperation,
    CopyCheck,
    PageTarget,
    Plan,
    PlanRefused,
    ScopedWrite,
    StoredRecord,
    ToolArguments,
    ToolContext,
    WriteTool,
)

Table = Literal["pages", "tt_content"]
TRANSLATE = {"pages": "Translate the page {record}", "tt_content": "Translate the content element {record}"}
COPY_HIDDEN = {"pages": "The copy is hidden; subpages are not copied.", "tt_content": "The copy is hidden."}
PARENT_FIELD = {"pages": "l10n_parent", "tt_content": "l18n_parent"}


class TranslationArguments(ToolArguments):
    """The record in the default language, and the language it is to be translated into."""

    table: Table
    uid: Uid
    language: Annotated[int, Field(ge=1, le=9999, strict=True)]


class CreateTranslationDraft(WriteTool[TranslationArguments]):
    """A hidden translation of one page or element."""

    name: ClassVar[str] = "create_translation_draft"
    description: ClassVar[str] = (
        "Create the translation of one page or one content element in a language of the site. The texts are taken "
        "over from the original for somebody to translate. The draft is hidden; a person must unhide it. "
        "Translate the page first, then each of its elements with a call of its own."
    )
    arguments: ClassVar[type[ToolArguments]] = TranslationArguments

    def scoped_write(self, arguments: TranslationArguments) -> ScopedWrite:
        """The record, source and target language (S-29)."""
        return ScopedWrite(
            ClaimOperation.LOCALIZE,
            records=(reference(arguments.table, arguments.uid),),
            language=arguments.language,
            source_language=0,
        )

    async def plan(self, arguments: TranslationArguments, context: ToolContext) -> Plan:
        """Source and language; refused where a translation is there already."""
        table, language = arguments.table, arguments.language
        stored = await existing(context, table, arguments.uid)
        if stored.number("sys_language_uid") != 0:
            raise PlanRefused("Only a record in the default language can be translated. Nothing was changed.")
        if any(_language(row) == language for row in stored.translations):
            raise PlanRefused("There is a translation in that language already. Nothing was changed.")
        title = await language_title(context, language)
        if title is None:
            raise PlanRefused("No site has that language. Nothing was changed.")
        expects: list[Expect] = expectation(table, stored)
        return Plan(
            operations=(*expects, Cmdmap(cmdmap={table: {str(arguments.uid): {"localize": language}}})),
            target=WriteTarget(table=table, uid=arguments.uid, copied=True),
            lines=(
                context.say(TRANSLATE[table], record=label(table, stored)),
                context.say("Into: {title} (language {language})", title=title, language=language),
                context.say("The draft is hidden; its texts are taken over from the original."),
            ),
            affected=AffectedRecord(table=table, uid=arguments.uid),
            language=language,
            copy_check=CopyCheck(
                operation=len(expects),
                table=table,
                source=arguments.uid,
                expected={"sys_language_uid": language, PARENT_FIELD[table]: arguments.uid, "hidden": 1},
            ),
            success=(
                f"Created the draft {table}:{{uid}} in {title} of {label(table, stored)}. Its texts are not "
                "translated yet. It is hidden; a person must unhide it."
            ),
            touches=(reference(table, arguments.uid),),
        )


class CopyArguments(ToolArguments):
    """The record, the page it is copied to, and optionally the record it goes after."""

    table: Table
    uid: Uid
    target_page: Uid
    after_uid: Uid | None = None


class CopyRecord(WriteTool[CopyArguments]):
    """A hidden copy of one record, of a page without its subpages (S-36)."""

    name: ClassVar[str] = "copy_record"
    description: ClassVar[str] = (
        "Copy one page (without its subpages) or one content element to a page. The copy is hidden."
    )
    arguments: ClassVar[type[ToolArguments]] = CopyArguments

    def scoped_write(self, arguments: CopyArguments) -> ScopedWrite:
        """Record, destination, anchor (S-29)."""
        records = [reference(arguments.table, arguments.uid)]
        if arguments.after_uid:
            records.append(reference(arguments.table, arguments.after_uid))
        return ScopedWrite(
            ClaimOperation.COPY, records=tuple(records), pages=(PageTarget(arguments.target_page, arguments.table),)
        )

    async def plan(self, arguments: CopyArguments, context: ToolContext) -> Plan:
        """What is copied, and where to."""
        stored = await existing(context, arguments.table, arguments.uid)
        page = await existing(context, "pages", arguments.target_page)
        if stored.number("sys_language_uid") > 0:
            raise PlanRefused("A translation cannot be copied alone; copy its original. Nothing was changed.")
        place, to = arguments.target_page, context.say("To: page {page}, first", page=label("pages", page))
        if arguments.after_uid:
            anchor = await existing(context, arguments.table, arguments.after_uid)
            if anchor.number("pid") != arguments.target_page:
                raise PlanRefused(ANCHOR_ELSEWHERE)
            after = label(arguments.table, anchor)
            to = context.say("To: page {page}, after {anchor}", page=label("pages", page), anchor=after)
            place = -arguments.after_uid
        command: Any = {"action": "paste", "target": place, "update": {"hidden": 1}}
        return Plan(
            operations=(Cmdmap(cmdmap={arguments.table: {str(arguments.uid): {"copy": command}}}),),
            target=WriteTarget(table=arguments.table, uid=arguments.uid, copied=True),
            lines=(
                context.say("Copy {record}", record=label(arguments.table, stored)),
                to,
                context.say(COPY_HIDDEN[arguments.table]),
            ),
            affected=AffectedRecord(table=arguments.table),
            copy_check=CopyCheck(
                operation=0,
                table=arguments.table,
                source=arguments.uid,
                expected={"pid": arguments.target_page, "hidden": 1},
            ),
            success=f"Copied {label(arguments.table, stored)} to {arguments.table}:{{uid}}. The copy is hidden.",
        )


def _language(row: dict[str, Any]) -> int:
    value = row.get("sys_language_uid", row.get("language"))
    return int(value) if isinstance(value, int | str) and str(value).lstrip("-").isdigit() else -1


async def language_title(context: ToolContext, language: int) -> str | None:
    """The title of a language in any of the sites, none where no site has it."""
    for site in await context.reader.sites():
        for entry in site.get("languages", ()):
            if isinstance(entry, dict) and entry.get("languageId", entry.get("id")) == language:
                return str(entry.get("title") or f"language {language}")
    return None


__all__ = ["CopyRecord", "CreateTranslationDraft", "StoredRecord", "language_title"]
