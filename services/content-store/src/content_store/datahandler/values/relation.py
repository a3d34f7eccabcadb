"""Relation fields: which references a submitted value names, and what waits until the row is written (SEMANTICS 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from content_store.datahandler.errors import Refusal
from content_store.datahandler.refindex_rows import relation_places
from content_store.datahandler.relations.csv import (
    Reference,
    format_reference,
    parse_reference,
    parse_references,
    split_list,
)
from content_store.datahandler.relations.foreign_field import belongs
from content_store.datahandler.run import RemapTask
from content_store.datahandler.values.choice import choose_tokens, limit_tokens
from content_store.datahandler.values.field import KEEP, FieldContext, empty_relation
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.records.gateway import Row


async def check_relation(
    field: FieldContext, value: Any, spec: RelationSpec, tasks: list[RemapTask], inside: tuple[str, str] | None = None
) -> Any:
    """The value to store, or KEEP while it holds placeholders; what is to be written elsewhere is added to the tasks."""
    if value is None and field.column.nullable and not spec.counted:
        return None
    tokens = split_list(value)
    if not spec.children:
        tokens = limit_tokens(field, choose_tokens(field, tokens))
    if not field.run.copy_mode:
        if spec.children and spec.storage != "mm":
            await _may_attach(field, tokens, spec)
        if spec.storage == "mm":
            _check_tables(field, tokens, spec)
    waiting = any("NEW" in token for token in tokens)
    if waiting or spec.counted:
        tasks.append(
            RemapTask(
                field.table.name,
                field.record_id,
                field.column.name,
                tokens,
                "relation",
                field.status,
                waiting,
                inside,
            )
        )
    if waiting:
        return KEEP
    return await stored_value(field, tokens, spec)


async def _may_attach(field: FieldContext, tokens: list[str], spec: RelationSpec) -> None:
    """To take a child from where it is, is to change it: asked for before anything is written.

    Raises:
        Refusal: a child of somebody else that the user may not change.
    """
    ctx = field.run.ctx
    if spec.table not in ctx.schema or ctx.policy.user.admin:
        return
    with_pages = field.table.name == "pages" or "pages" in field.run.root.datamap
    rows = await ctx.reader.stored_many(spec.table, [r.uid for r in parse_references(tokens, spec) if r.uid])
    own = _own_children(field, spec, rows)
    for row in rows.values():
        if row["uid"] in own:
            continue
        denial = (
            await ctx.policy.modify_table(spec.table)
            or await ctx.policy.update(spec.table, row, with_pages=with_pages)
            or await ctx.policy.edit_record(spec.table, row)
        )
        if denial is not None:
            raise Refusal(denial.code, denial.message, denial.data or {}, denied=True)


def _own_children(field: FieldContext, spec: RelationSpec, rows: Mapping[int, Row]) -> set[int]:
    """Those of the rows that are children of the record already; a new record has none."""
    if not field.uid:
        return set()
    if spec.storage == "list":
        places = relation_places(field.run.ctx.schema, field.table, field.current or {})
        return {
            r.uid
            for place in places
            if place.spec.children and place.spec.storage == "list" and place.spec.table == spec.table
            for r in parse_references(split_list(place.value), place.spec)
        }
    return {
        uid
        for uid, row in rows.items()
        if row.get(spec.foreign_field) == field.uid and belongs(spec, field.table.name, row)
    }


def _check_tables(field: FieldContext, tokens: list[str], spec: RelationSpec) -> None:
    """Any table is any that there is; rows of a relation table are written when it is too late to say so.

    Raises:
        Refusal: a table that does not exist.
    """
    for reference in parse_references(tokens, spec):
        if reference.table not in field.run.ctx.schema:
            raise field.refuse("there is no table of that name")


async def stored_value(field: FieldContext, tokens: list[str], spec: RelationSpec) -> Any:
    """What the field itself holds for a list without placeholders."""
    if spec.counted:
        return len(await existing_targets(field, tokens, spec))
    if spec.children:
        kept = [r.id for r in parse_references(tokens, spec) if r.uid]
        return ",".join(kept) if kept else empty_relation(field, counted=False)
    kept = [text for token in tokens if (text := _stored_token(token, spec)) is not None]
    return ",".join(kept) if kept else _empty(field, tokens)


def _stored_token(token: str, spec: RelationSpec) -> str | None:
    reference = parse_reference(token, spec)
    if reference is not None:
        return format_reference(reference, spec) if spec.type == "group" else token
    # A select may offer other items beside the records.
    return token if spec.type == "select" else None


def _empty(field: FieldContext, tokens: list[str]) -> Any:
    # 0 is how "none" is submitted for a single reference.
    if tokens and tokens[0] == "0":
        stored = field.table.db_columns.get(field.column.name)
        if stored is not None and stored.type == "int":
            return 0
    return empty_relation(field, counted=False)


async def existing_targets(field: FieldContext, tokens: list[str], spec: RelationSpec) -> list[Reference]:
    """References without doubles; children as often as they are listed, but only those whose row exists."""
    references = [r for r in parse_references(tokens, spec) if r.uid]
    if spec.storage != "foreign_field" or spec.table not in field.run.ctx.schema:
        return list(dict.fromkeys(references))
    rows = await field.run.ctx.reader.stored_many(spec.table, [r.uid for r in references])
    return [r for r in references if r.uid in rows]
