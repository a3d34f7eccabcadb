"""``unique`` and ``uniqueInPid``: numbers are appended until nobody else has the value (SEMANTICS 5)."""

from __future__ import annotations

from typing import Any

from content_store.datahandler.values.field import FieldContext


async def make_unique(field: FieldContext, value: Any) -> Any:
    """The value, with 0, 1, 2 ... behind it when another record has it.

    Deleted records do not count, nor, in fields that are excluded from translation, the record's own translations
    and its original.
    """
    evals = field.column.evals
    if not isinstance(value, str) or not value or not ({"unique", "uniqueInPid"} & set(evals)):
        return value
    page = None if "unique" in evals else field.page
    limit = field.run.ctx.options.max_unique_attempts
    numbered = [value, *(f"{value}{number}" for number in range(limit + 1))]
    # One statement for the common case, one more for all candidates when it is taken.
    if value not in await _taken(field, [value], page):
        return value
    taken = await _taken(field, numbered, page)
    free = next((candidate for candidate in numbered if candidate not in taken), None)
    if free is None:
        raise field.refuse("no unique value was found")
    return free


async def _taken(field: FieldContext, candidates: list[str], page: int | None) -> set[str]:
    table, name = field.table, field.column.name
    where: dict[str, Any] = {name: candidates}
    if page is not None:
        where["pid"] = page
    if table.delete_field:
        where[table.delete_field] = 0
    family = _family(field)
    rows = await field.run.ctx.gateway.select(table.name, where)
    return {str(row[name]) for row in rows if not _is_family(field, row, family)}


def _family(field: FieldContext) -> set[int]:
    current, parent = field.current, field.table.parent_field
    family = {field.uid} if field.uid else set()
    if current is not None:
        family.add(int(current.get("t3ver_oid") or 0))
        if field.column.l10n_mode == "exclude" and parent:
            family.add(int(current.get(parent) or 0))
    return family - {0}


def _is_family(field: FieldContext, row: dict[str, Any], family: set[int]) -> bool:
    if row["uid"] in family or row.get("t3ver_oid") in family:
        return True
    parent = field.table.parent_field
    return field.column.l10n_mode == "exclude" and bool(parent) and row.get(parent or "") in family
