"""Translations of records: connected (localize) and free (copyToLanguage) (SEMANTICS 11)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from content_store.datahandler.commands.copy_values import taken_along
from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.guard import refusal_of
from content_store.datahandler.labels import hides_copies, prefix_language

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema


async def localize_record(
    run: HandlerRun, table_name: str, uid: int, language: int, *, connected: bool = True
) -> int | None:
    """Makes the translation of a record.

    Returns:
        Its uid; ``None`` when this run has made it already.

    Raises:
        Refusal: no language, no such record, page or language, a translation that exists, a missing right.
    """
    key = (table_name, uid, language)
    if key in run.ctx.localized:
        return None
    table = run.ctx.table(table_name)
    row = await _source(run, table, uid)
    connected = connected or table_name == "pages"
    page = uid if table_name == "pages" else row["pid"]
    if table_name == "pages" and row[table.parent_field or ""]:
        page = row[table.parent_field or ""]
    await _check(run, table, row, page, language, connected)
    overrides = await _overrides(run, table, row, page, language, connected)
    run.ctx.localized[key] = 0
    new: int | None
    if table_name == "pages":
        new = await _localize_page(run, table, row, overrides)
    else:
        new = await _localize_on_page(run, table, row, language, overrides, connected)
    run.ctx.localized[key] = new or 0
    return new


async def _source(run: HandlerRun, table: TableSchema, uid: int) -> Row:
    if not table.localizable:
        raise Refusal(ErrorCode.TABLE_WITHOUT_LANGUAGE, "Records of {table} have no language", {"table": table.name})
    row = await run.ctx.reader.record(table.name, uid)
    if row is None:
        data = {"table": table.name, "uid": uid}
        raise Refusal(ErrorCode.RECORD_NOT_FOUND, "There is no record {table}:{uid}", data)
    return row


async def _check(run: HandlerRun, table: TableSchema, row: Row, page: int, language: int, connected: bool) -> None:
    from content_store.datahandler.pointers import deny

    deny(await run.ctx.policy.modify_table(table.name))
    if page:
        deny(await run.ctx.policy.show_page(page))
    if not run.ctx.policy.may_use_language(language):
        raise Refusal("language", "Language {language} may not be used", {"language": language}, denied=True)
    if language <= 0 or await run.ctx.language_on(page, language) is None:
        where = {"language": language, "page": page}
        raise Refusal(ErrorCode.UNKNOWN_LANGUAGE, "Language {language} is not known on page {page}", where)
    parent = row[table.parent_field or ""]
    data: dict[str, Any] = {"table": table.name, "uid": row["uid"], "language": language}
    if row[table.language_field or ""] > 0 and parent:
        original = await run.ctx.reader.record(table.name, parent)
        if original is None or original[table.language_field or ""] != 0:
            message = "{table}:{uid} is not a translation of a default-language record"
            raise Refusal(ErrorCode.NOT_DEFAULT_LANGUAGE, message, data)
    if await find_translation(run, table.name, row["uid"], language) is not None:
        raise Refusal(ErrorCode.TRANSLATION_EXISTS, "{table}:{uid} has a translation in language {language}", data)


async def find_translation(run: HandlerRun, table_name: str, uid: int, language: int) -> Row | None:
    """The record on the same page that was made from this one in the language."""
    table = run.ctx.table(table_name)
    row = await run.ctx.reader.record(table_name, uid)
    if row is None or not table.localizable:
        return None
    language_field, parent_field, source_field = (
        table.language_field or "",
        table.parent_field or "",
        table.source_field,
    )
    if source_field:
        for found in (await run.ctx.reader.lookup(table_name, source_field, [uid])).get(uid, []):
            if found[language_field] == language and found["pid"] == row["pid"]:
                return found
    for found in (await run.ctx.reader.lookup(table_name, parent_field, [uid])).get(uid, []):
        made_from_parent = not source_field or not found[source_field]
        if found[language_field] == language and found["pid"] == row["pid"] and made_from_parent:
            return found
    return None


async def _overrides(
    run: HandlerRun, table: TableSchema, row: Row, page: int, language: int, connected: bool
) -> dict[str, Any]:
    values: dict[str, Any] = {table.language_field or "": language}
    in_default = row[table.language_field or ""] == 0
    if in_default:
        values[table.parent_field or ""] = row["uid"] if connected else 0
    else:
        values[table.parent_field or ""] = row[table.parent_field or ""] if connected else 0
    if table.source_field:
        values[table.source_field] = row["uid"]
    for column in table.columns.values():
        if column.l10n_mode == "prefixLangTitle" and row.get(column.name) and column.name in taken_along(run, table):
            values[column.name] = await prefix_language(run, table, column, row[column.name], language, page)
    hidden = table.enable_columns.get("disabled")
    if hidden and hidden in row:
        settings = dict(await run.ctx.tsconfig(page))
        hide = bool(table.ctrl.get("hideAtCopy")) and hides_copies(settings, table.name)
        values[hidden] = 1 if hide or row[hidden] else 0
    return values


async def _localize_page(run: HandlerRun, table: TableSchema, row: Row, overrides: dict[str, Any]) -> int:
    """Only what differs is submitted; the rest are defaults and what the synchronization brings."""
    from content_store.datahandler.datamap import process_datamap

    placeholder = f"NEW{uuid.uuid4().hex}"
    nested = run.nested({"pages": {placeholder: {**overrides, "pid": row["pid"]}}}, copying=True)
    await process_datamap(nested)
    made = nested.placeholders.get(placeholder)
    if made is None:
        raise refusal_of(nested, placeholder, "The translation could not be written")
    run.note_copy("pages", row["uid"], made[1])
    return made[1]


async def _localize_on_page(
    run: HandlerRun, table: TableSchema, row: Row, language: int, overrides: dict[str, Any], connected: bool
) -> int | None:
    from content_store.datahandler.commands.copy import CopyOptions, copy_record

    anchor = await _previous_translation(run, table, row, language)
    options = CopyOptions(first=True, overrides=overrides, language=language, connected=connected)
    return await copy_record(run, table.name, row["uid"], -anchor, options)


async def _previous_translation(run: HandlerRun, table: TableSchema, row: Row, language: int) -> int:
    """The translation of the record before the source, or the source itself."""
    sort = table.sort_field
    if not sort:
        return int(row["uid"])
    where: dict[str, Any] = {"pid": row["pid"], table.language_field or "": row[table.language_field or ""]}
    if table.delete_field:
        where[table.delete_field] = 0
    if table.name == "tt_content" and "colPos" in row:
        where["colPos"] = row["colPos"]
    name = '"' + sort.replace('"', '""') + '"'
    before = await run.ctx.gateway.select(
        table.name, where, order_by=(f"-{sort}", "-uid"), limit=1, extra=f"{name} < {int(row[sort])}"
    )
    if before:
        translation = await find_translation(run, table.name, before[0]["uid"], language)
        if translation is not None:
            return int(translation["uid"])
    return int(row["uid"])
