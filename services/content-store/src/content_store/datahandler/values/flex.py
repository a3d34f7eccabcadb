"""Flex form fields: the submitted parts over the stored form, each inner field by its own rule (SEMANTICS 5)."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from content_store.datahandler.run import RemapTask
from content_store.datahandler.values.field import KEEP, FieldContext
from content_store.datahandler.values.relation import check_relation
from content_store.schema.flex import FlexError, format_value, merge_values, parse_value, structure_of

InnerCheck = Callable[[FieldContext, Any], Awaitable[Any]]


async def check_flex(field: FieldContext, value: Any, tasks: list[RemapTask], check_inner: InnerCheck) -> Any:
    """The XML to store. A map is merged over the stored form, a text replaces it.

    Raises:
        Refusal: no flex form, or an inner value its rule refuses.
    """
    if value is None or value == "":
        return None if field.column.nullable or value is None else ""
    try:
        structure = structure_of(field.column)
        if isinstance(value, Mapping):
            stored = field.current.get(field.column.name) if field.current else None
            merged = merge_values(parse_value(stored), value)
            submitted = value.get("data", {})
        elif isinstance(value, str):
            merged = parse_value(value)
            # Copies and imports come as XML: the relations inside are dealt with by whoever copies.
            return value if field.run.copy_mode else format_value(merged)
        else:
            raise field.refuse("a flex form is expected")
        for sheet, name, inner in structure.columns():
            entry = submitted.get(sheet, {}).get("lDEF", {}).get(name) if isinstance(submitted, Mapping) else None
            if not isinstance(entry, Mapping) or "vDEF" not in entry:
                continue
            checked = await _check_inner(field, inner, sheet, entry["vDEF"], tasks, check_inner)
            target = merged["data"][sheet]["lDEF"][name]
            if checked is KEEP:
                before = parse_value(field.current.get(field.column.name) if field.current else None)
                checked = before["data"].get(sheet, {}).get("lDEF", {}).get(name, {}).get("vDEF", "")
            target["vDEF"] = checked
        return format_value(merged)
    except FlexError as error:
        raise field.refuse(str(error)) from None


async def _check_inner(
    field: FieldContext, inner: Any, sheet: str, value: Any, tasks: list[RemapTask], check_inner: InnerCheck
) -> Any:
    spec = inner.relation
    # Inner fields have no columns: rules that ask the table see the flex field's own.
    context = dataclasses.replace(field, column=inner)
    if spec is None:
        return await check_inner(context, value)
    before = len(tasks)
    checked = await check_relation(context, value, spec, tasks, (sheet, inner.name))
    for task in tasks[before:]:
        task.field = field.column.name
    return checked
