"""inlineLocalizeSynchronize: children of a translated parent (SEMANTICS 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from content_store.datahandler.commands.copy import skip_refused
from content_store.datahandler.commands.delete import delete_record
from content_store.datahandler.commands.localize import find_translation, localize_record
from content_store.datahandler.datamap import process_datamap
from content_store.datahandler.entries import read_uid
from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.guard import refusal_of
from content_store.datahandler.relations.children import child_uids
from content_store.datahandler.result import NOT_CARRIED_OUT
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema


async def localize_children(run: HandlerRun, table_name: str, uid: int, value: Any) -> int | None:
    """Localizes missing children of a field; ``synchronize`` also deletes those whose original is gone.

    Args:
        run: the instance at work.
        table_name: of the parent.
        uid: translated parent, or its original.
        value: ``{field, language, action: localize | synchronize, ids: [...]}``.

    Returns:
        Uid of the translated parent, ``None`` for a parent in free mode (nothing is done).

    Raises:
        Refusal: no such field, parent or translation, or the translation may not be changed.
    """
    table = run.ctx.table(table_name)
    field, language, action, ids = _read(table, value)
    spec = table.columns[field].relation if field in table.columns else None
    if spec is None or not spec.children or not table.localizable:
        raise Refusal(
            ErrorCode.FIELD_NOT_INLINE, "{table}.{field} holds no children", {"table": table_name, "field": field}
        )
    if not run.ctx.policy.may_write_field(table_name, field):
        # Children that cannot join the translation would join the original.
        data = {"table": table_name, "field": field}
        raise Refusal(ErrorCode.FIELD_NOT_ALLOWED, "{table}.{field} may not be written", data, denied=True)
    parent = await _translated_parent(run, table, uid, language)
    if parent is None:
        return None
    language = parent[table.language_field or ""]
    original = await run.ctx.reader.record(table_name, parent[table.parent_field or ""])
    if original is None:
        data = {"table": table_name, "uid": parent[table.parent_field or ""]}
        raise Refusal(ErrorCode.RECORD_NOT_FOUND, "There is no record {table}:{uid}", data)
    await _write(
        run, table, parent, field, await _children(run, spec, table, original, parent, field, language, action, ids)
    )
    return int(parent["uid"])


def _read(table: TableSchema, value: Any) -> tuple[str, int, str, list[int]]:
    if not isinstance(value, Mapping) or not isinstance(value.get("field"), str):
        raise Refusal(ErrorCode.INVALID_VALUE, "field, language and action are expected", {"table": table.name})
    language, ids = read_uid(value.get("language")) or 0, value.get("ids") or []
    action = value.get("action") or ("localize" if ids else "synchronize")
    if action not in ("localize", "synchronize") or not isinstance(ids, list):
        raise Refusal(ErrorCode.INVALID_VALUE, "The action is localize or synchronize", {"table": table.name})
    return value["field"], language, str(action), [uid for raw in ids if (uid := read_uid(raw)) is not None]


async def _translated_parent(run: HandlerRun, table: TableSchema, uid: int, language: int) -> Row | None:
    row = await run.ctx.reader.record(table.name, uid)
    data = {"table": table.name, "uid": uid}
    if row is None:
        raise Refusal(ErrorCode.RECORD_NOT_FOUND, "There is no record {table}:{uid}", data)
    if row[table.language_field or ""] > 0:
        return row if row[table.parent_field or ""] else None
    translations = await run.ctx.reader.translations(table.name, uid)
    found = next((t for t in translations if t[table.language_field or ""] == language), None)
    if found is None:
        raise Refusal(ErrorCode.RECORD_NOT_FOUND, "{table}:{uid} is not translated", data)
    return found


async def _children(
    run: HandlerRun,
    spec: RelationSpec,
    table: TableSchema,
    original: Row,
    parent: Row,
    field: str,
    language: int,
    action: str,
    ids: list[int],
) -> list[int]:
    originals = await child_uids(run.ctx, spec, table.name, original["uid"], original[field])
    present = await child_uids(run.ctx, spec, table.name, parent["uid"], parent[field])
    child = run.ctx.table(spec.table)
    kept: list[int] = []
    for uid in present:
        row = await run.ctx.reader.record(spec.table, uid)
        source = row[child.parent_field or ""] if row is not None and child.localizable else 0
        if action == "synchronize" and source and source not in originals:
            await delete_record(run, spec.table, uid)
        else:
            kept.append(uid)
    if not child.localizable:
        return kept
    for uid in originals:
        if action == "localize" and ids and uid not in ids:
            continue
        existing = await find_translation(run, spec.table, uid, language)
        if existing is not None and existing["uid"] in kept:
            continue
        new = await skip_refused(run, spec.table, uid, localize_record(run, spec.table, uid, language))
        if new is not None:
            kept.append(new)
    return kept


async def _write(run: HandlerRun, table: TableSchema, parent: Row, field: str, children: list[int]) -> None:
    value = ",".join(str(uid) for uid in children)
    nested = run.nested({table.name: {str(parent["uid"]): {field: value}}}, copying=True)
    await process_datamap(nested)
    if any(outcome.status in NOT_CARRIED_OUT for outcome in nested.results):
        raise refusal_of(nested, str(parent["uid"]), "The field could not be written")
