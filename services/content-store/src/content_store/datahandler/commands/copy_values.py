"""What each field of a copy holds: relations by their kind, children copied or localized along (SEMANTICS 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from content_store.datahandler.relations.children import child_rows
from content_store.datahandler.relations.csv import format_reference, parse_reference, split_list
from content_store.datahandler.values.special import new_uuid
from content_store.schema.flex import FlexError, parse_value, structure_of
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.datahandler.commands.copy import CopyOptions
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import Column, TableSchema


def taken_along(run: HandlerRun, table: TableSchema) -> frozenset[str]:
    """Fields whose value a copy holds. Not those the user may not write: a default stands there then.

    Pointers of translations are kept, and what hides a record: without it the copy would be public.
    """
    known = run.ctx.taken_along.get(table.name)
    if known is None:
        kept = (table.language_field, table.parent_field, table.source_field, *table.enable_columns.values())
        may_write = run.ctx.policy.may_write_field
        known = frozenset(name for name in table.columns if name in kept or may_write(table.name, name))
        run.ctx.taken_along[table.name] = known
    return known


def copied_as_stored(column: Column) -> bool:
    """Is the value of a copy simply that of the source?"""
    return column.relation is None and column.type not in ("flex", "uuid")


async def copy_field(
    run: HandlerRun, table: TableSchema, column: Column, row: Row, page: int, options: CopyOptions
) -> Any:
    """The submitted value of one field of the copy."""
    if column.type == "flex":
        return await _copy_flex(run, table, column, row, page, options)
    if column.type == "uuid":
        # An empty one is made anew, also where the field is not required.
        return new_uuid(column)
    spec = column.relation
    if spec is None:
        return row[column.name]
    return await copy_relation(run, spec, table, row, row[column.name], page, options)


async def copy_relation(
    run: HandlerRun, spec: RelationSpec, table: TableSchema, row: Row, value: Any, page: int, options: CopyOptions
) -> Any:
    """The list of targets of the copy: the same, or copies of the children."""
    localizing = is_localizing(table, row, options)
    if spec.children and spec.storage != "mm":
        return ",".join(str(uid) for uid in await copy_children(run, spec, table, row, value, page, options))
    if spec.storage == "mm":
        if localizing and not spec.opposite and not spec.kept_by_translations:
            return ""
        rows = (await run.ctx.mm.rows_of(spec, table.name, [row["uid"]]))[row["uid"]]
        return ",".join(format_reference(r, spec) for r in run.ctx.mm.targets(spec, rows))
    if localizing and spec.localize_references:
        return await _localized_references(run, spec, value, options)
    return value


def is_localizing(table: TableSchema, row: Row, options: CopyOptions) -> bool:
    """Is the copy made in another language than its source (and not merely a copied translation)?"""
    return options.language > 0 and row.get(table.language_field or "", 0) != options.language


async def copy_children(
    run: HandlerRun, spec: RelationSpec, table: TableSchema, row: Row, value: Any, page: int, options: CopyOptions
) -> list[int]:
    """Copies or localizes the children of one field; returns the new ones in order."""
    from content_store.datahandler.commands.copy import skip_refused
    from content_store.datahandler.commands.copy_raw import copy_raw
    from content_store.datahandler.commands.localize import localize_record

    made: list[int] = []
    localizing = is_localizing(table, row, options)
    # What this command made is no child of an original.
    copies = set(run.copied[spec.table].values())
    for child in await child_rows(run.ctx, spec, table.name, row["uid"], value):
        new: int | None
        if child["uid"] in copies:
            continue
        if localizing:
            if not run.ctx.table(spec.table).localizable:
                continue
            work = localize_record(run, spec.table, child["uid"], options.language, connected=options.connected)
            new = await skip_refused(run, spec.table, child["uid"], work)
        else:
            new = run.copied[spec.table].get(child["uid"])
            if new is None:
                new = await copy_raw(run, spec.table, child["uid"], page)
        if new is None:
            continue
        made.append(new)
        if table.name == "pages" and not localizing:
            run.page_children[spec.table, new] = row["uid"]
    return made


async def _localized_references(run: HandlerRun, spec: RelationSpec, value: Any, options: CopyOptions) -> str:
    from content_store.datahandler.commands.copy import skip_refused
    from content_store.datahandler.commands.localize import find_translation, localize_record

    tokens = []
    for token in split_list(value):
        reference = parse_reference(token, spec)
        table = run.ctx.schema.tables.get(reference.table) if reference is not None else None
        if reference is None or not reference.uid or table is None or not table.localizable:
            tokens.append(token)
            continue
        existing = await find_translation(run, reference.table, reference.uid, options.language)
        uid = existing["uid"] if existing is not None else None
        if uid is None:
            work = localize_record(run, reference.table, reference.uid, options.language, connected=options.connected)
            uid = await skip_refused(run, reference.table, reference.uid, work)
        tokens.append(token if uid is None else token[: len(token) - len(reference.id)] + str(uid))
    return ",".join(tokens)


async def _copy_flex(
    run: HandlerRun, table: TableSchema, column: Column, row: Row, page: int, options: CopyOptions
) -> Any:
    value = row[column.name]
    if not value:
        return value
    try:
        structure = structure_of(column)
        data = parse_value(value)
    except FlexError:
        return value
    touched = False
    for sheet, name, inner in structure.columns():
        spec = inner.relation
        field = data["data"].get(sheet, {}).get("lDEF", {}).get(name)
        if spec is None or not isinstance(field, dict):
            continue
        field["vDEF"] = await copy_relation(run, spec, table, row, field.get("vDEF"), page, options)
        touched = True
    return data if touched else value
