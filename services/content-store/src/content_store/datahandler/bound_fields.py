"""Fields of a translation that follow its original: whoever asked for another value is told (SEMANTICS 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.fields import CheckedFields, Target, same_value
from content_store.datahandler.relations.children import child_uids
from content_store.datahandler.relations.csv import Reference, parse_reference, split_list
from content_store.schema.flex import FlexError, merge_values, parse_value

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.schema.relations import RelationSpec


async def name_bound(
    run: HandlerRun, target: Target, submitted: Mapping[str, Any], stored: Mapping[str, Any], checked: CheckedFields
) -> None:
    """Adds to the dropped fields those the translation could not decide and that hold something else now.

    Args:
        run: the instance at work; what a copy brings along was not asked for by anybody.
        target: of the entry.
        submitted: the entry as it is written, with the values of the original.
        stored: what the record holds after it.
        checked: gets the names.
    """
    if run.copy_mode:
        return
    for name, given in run.bound.get((target.table.name, target.record_id), {}).items():
        if await _differs(run, target, name, given, submitted, stored):
            checked.dropped[name] = ErrorCode.FOLLOWS_ORIGINAL


async def _differs(
    run: HandlerRun, target: Target, name: str, given: Any, submitted: Mapping[str, Any], stored: Mapping[str, Any]
) -> bool:
    column, value = target.table.columns[name], stored.get(name)
    if column.type == "flex" and isinstance(given, Mapping):
        try:
            form = parse_value(value)
            return merge_values(form, given) != form
        except FlexError:
            return True
    spec = column.relation
    if spec is None:
        return not same_value(target.table, name, value, given)
    try:
        wanted = _references(given, spec)
        if not spec.counted or name in submitted:
            return wanted != _references(submitted.get(name, value), spec)
    except Refusal:
        return True
    return wanted != await _present(run, target, name, spec)


def _references(value: Any, spec: RelationSpec) -> list[Reference]:
    return [r for token in split_list(value) if (r := parse_reference(token, spec)) is not None and r.id != "0"]


async def _present(run: HandlerRun, target: Target, name: str, spec: RelationSpec) -> list[Reference]:
    if not target.uid:
        return []
    if spec.storage == "mm":
        rows = (await run.ctx.mm.rows_of(spec, target.table.name, [target.uid]))[target.uid]
        return run.ctx.mm.targets(spec, rows)
    value = (target.current or {}).get(name)
    uids = await child_uids(run.ctx, spec, target.table.name, target.uid, value)
    return [Reference(spec.table, str(uid)) for uid in uids]
