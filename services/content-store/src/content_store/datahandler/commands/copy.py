"""Copies of records, with what belongs to them (SEMANTICS 9, 13)."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from content_store.datahandler.commands.copy_values import copied_as_stored, copy_field, taken_along
from content_store.datahandler.datamap import process_datamap
from content_store.datahandler.datamap_insert import default_page
from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.guard import guarded, refusal_of
from content_store.datahandler.labels import copy_label, hides_copies
from content_store.datahandler.log import LogAction, LogLevel
from content_store.datahandler.pointers import deny
from content_store.datahandler.result import EntryOutcome
from content_store.datahandler.sorting import find_anchor
from content_store.datahandler.writer import relation_columns, set_columns

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema


@dataclass(frozen=True)
class CopyOptions:
    """How a record is copied.

    Attributes:
        first: the record named by the command (or its translation): hidden and labelled as a copy.
        overrides: values instead of the source's.
        language: the copy is a localization into this language, 0 is a plain copy.
        connected: localized children keep pointing to their originals (not with copyToLanguage).
        ignore_localization: translations stay behind.
    """

    first: bool = False
    overrides: Mapping[str, Any] = field(default_factory=dict)
    language: int = 0
    connected: bool = True
    ignore_localization: bool = False


async def copy_record(run: HandlerRun, table_name: str, uid: int, target: int, options: CopyOptions) -> int | None:
    """Copies a record to a page (0 or more) or behind another record (negative).

    Returns:
        Uid of the copy, ``None`` when the command at work has copied the record already.

    Raises:
        Refusal: no such record or place, or a missing right.
    """
    table = run.ctx.table(table_name)
    if uid in run.copied[table_name] or uid in run.copied[table_name].values():
        return None
    row = await run.ctx.reader.record(table_name, uid)
    if row is None:
        data = {"table": table_name, "uid": uid}
        raise Refusal(ErrorCode.RECORD_NOT_FOUND, "There is no record {table}:{uid}", data)
    anchor = await find_anchor(run.ctx, table, -target) if target < 0 else None
    page = anchor["pid"] if anchor is not None else await default_page(run, target)
    await _check_rights(run, table, row, page, options)
    values = await _copied_values(run, table, row, page, anchor, options)
    values["pid"] = target if target < 0 else page
    copy = await insert_copy(run, table, values)
    run.note_copy(table_name, uid, copy)
    # What was set on purpose (the pointers of a translation above all) stays.
    run.exchange[table_name, copy] = _relation_fields(table, row) - options.overrides.keys()
    if table_name == "pages":
        # What belongs to the translation of a page lies on the page as well.
        await _move_page_children(run, int(values.get(table.parent_field or "") or 0) or copy)
    if not options.language and not options.ignore_localization and _in_default_language(table, row):
        await copy_translations(run, table, row, copy, target, page, anchor, options)
    return copy


def _relation_fields(table: TableSchema, row: Row) -> set[str]:
    relations = {name for name, _ in relation_columns(table, row)}
    return relations | {c.name for c in table.columns.values() if c.type == "flex"}


def _in_default_language(table: TableSchema, row: Mapping[str, Any]) -> bool:
    return table.localizable and row[table.language_field or ""] == 0


async def _check_rights(run: HandlerRun, table: TableSchema, row: Row, page: int, options: CopyOptions) -> None:
    policy = run.ctx.policy
    deny(await policy.modify_table(table.name))
    source_page = row["uid"] if table.name == "pages" else row["pid"]
    if source_page:
        deny(await policy.show_page(source_page))
    whole = {**row, **options.overrides}
    is_page_translation = table.name == "pages" and whole.get(table.language_field or "", 0) > 0
    if not is_page_translation:
        deny(await policy.insert(table.name, page, whole))
    deny(await policy.edit_record(table.name, row, all_languages=table.name != "pages" and not options.language))


async def _copied_values(
    run: HandlerRun, table: TableSchema, row: Row, page: int, anchor: Row | None, options: CopyOptions
) -> dict[str, Any]:
    settings = dict(await run.ctx.tsconfig(page))
    from_anchor = _fields_of_anchor(table, anchor, options)
    along = taken_along(run, table)
    values: dict[str, Any] = {}
    for column in table.columns.values():
        name = column.name
        if name not in row:
            continue
        if name in options.overrides:
            values[name] = options.overrides[name]
        elif name not in along:
            continue
        elif name in from_anchor:
            values[name] = from_anchor[name]
        elif copied_as_stored(column):
            values[name] = row[name]
        else:
            values[name] = await copy_field(run, table, column, row, page, options)
    if row.get("l10n_state") is not None:
        values["l10n_state"] = row["l10n_state"]
    if table.diff_source_field:
        values.pop(table.diff_source_field, None)
    if options.first:
        await _mark_as_copy(run, table, page, settings, values, options)
    if table.editlock_field in values:
        values[table.editlock_field or ""] = 0
    if table.orig_uid_field:
        values[table.orig_uid_field] = row["uid"]
    return values


def _fields_of_anchor(table: TableSchema, anchor: Row | None, options: CopyOptions) -> dict[str, Any]:
    if anchor is None or options.language:
        return {}
    names = [n.strip() for n in str(table.ctrl.get("copyAfterDuplFields") or "").split(",") if n.strip()]
    return {name: anchor[name] for name in names if name in anchor}


async def _mark_as_copy(
    run: HandlerRun,
    table: TableSchema,
    page: int,
    settings: dict[str, str],
    values: dict[str, Any],
    options: CopyOptions,
) -> None:
    hidden = table.enable_columns.get("disabled")
    never = bool((run.ctx.policy.user.uc or {}).get("neverHideAtCopy"))
    if hidden in values and table.ctrl.get("hideAtCopy") and not never and hides_copies(settings, table.name):
        values[hidden or ""] = 1
    label = table.label_field
    if options.language or not label or not table.ctrl.get("prependAtCopy") or label in options.overrides:
        return
    disabled = settings.get(
        f"TCEMAIN.table.{table.name}.disablePrependAtCopy", settings.get("TCEMAIN.default.disablePrependAtCopy", "")
    )
    if disabled in ("", "0") and isinstance(values.get(label), str):
        values[label] = await copy_label(run, table, values[label], page)


async def insert_copy(run: HandlerRun, table: TableSchema, values: dict[str, Any]) -> int:
    """Writes a copy through a nested instance, so that defaults, slugs, synchronization and hooks apply.

    Raises:
        Refusal: the nested instance refused it (and has logged that).
    """
    placeholder = f"NEW{uuid.uuid4().hex}"
    nested = run.nested({table.name: {placeholder: values}}, copying=True)
    await process_datamap(nested)
    for source_table, versions in nested.auto_versions.items():
        run.auto_versions[source_table].update(versions)
    made = nested.placeholders.get(placeholder)
    if made is None:
        raise refusal_of(nested, placeholder, "The record could not be written")
    return made[1]


async def _move_page_children(run: HandlerRun, copy: int) -> None:
    # Inline children of a page lie on the page itself, which had no uid yet when they were copied.
    by_table: dict[str, list[int]] = {}
    for table, uid in run.page_children:
        by_table.setdefault(table, []).append(uid)
    run.page_children = {}
    for table, uids in by_table.items():
        await set_columns(run.ctx, run.ctx.table(table), uids, {"pid": copy})


async def copy_translations(
    run: HandlerRun,
    table: TableSchema,
    row: Row,
    copy: int,
    target: int,
    page: int,
    anchor: Row | None,
    options: CopyOptions,
) -> None:
    """Copies the translations of a default-language record to its copy, in the languages the target has."""
    site = await run.ctx.site_of(copy if table.name == "pages" else page)
    if site is None:
        return
    language_field, parent_field = table.language_field or "", table.parent_field or ""
    page_languages: set[int] | None = None
    if table.name != "pages":
        page_languages = {t["sys_language_uid"] for t in await run.ctx.reader.translations("pages", page)}
    for translation in await run.ctx.reader.translations(table.name, row["uid"]):
        language = translation[language_field]
        if language not in site.languages:
            message = "{table}:{uid} was not copied: the target has no language {language}"
            data = {"table": table.name, "uid": translation["uid"], "language": language}
            run.log_error(LogAction.INSERT, table.name, translation["uid"], message, data, level=LogLevel.WARNING)
            continue
        if page_languages is not None and language not in page_languages:
            continue
        overrides = {**options.overrides, parent_field: copy, language_field: language}
        if language_field in options.overrides:
            overrides[language_field] = options.overrides[language_field]
        if table.source_field:
            source = translation[table.source_field]
            overrides[table.source_field] = run.copied[table.name].get(source, copy if source == row["uid"] else source)
        place = target if table.name == "pages" else await _translation_target(run, table, page, anchor, language)
        nested = replace(options, overrides=overrides, ignore_localization=True)
        await skip_refused(
            run, table.name, translation["uid"], copy_record(run, table.name, translation["uid"], place, nested)
        )


async def _translation_target(run: HandlerRun, table: TableSchema, page: int, anchor: Row | None, language: int) -> int:
    if anchor is None:
        return page
    translations = await run.ctx.reader.translations(table.name, anchor["uid"])
    return next((-t["uid"] for t in translations if t[table.language_field or ""] == language), page)


async def skip_refused(run: HandlerRun, table: str, uid: int, work: Awaitable[int | None]) -> int | None:
    """Awaits a copy or localization of something that comes along; a refusal is logged and the rest goes on.

    There is no savepoint for it: refused after it (or a child of it) was written, which is rare, the command around it
    is carried out once more with savepoints everywhere.
    """
    made: list[int | None] = []

    async def carry_out() -> None:
        made.append(await work)

    outcome = EntryOutcome(table, str(uid), "copy", "written")
    done = await guarded(run, outcome, LogAction.INSERT, carry_out, savepoint=False)
    return made[0] if done and made else None
