"""The update that comes with a pasted copy or move (SEMANTICS 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from content_store.datahandler.errors import ErrorCode, Refusal

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun


@dataclass(frozen=True)
class PlacedValue:
    """Value of a copy or move command.

    Attributes:
        target: page, or minus the uid of the record to follow.
        update: fields to change afterwards, ``None`` without paste.
        ignore_localization: translations stay behind.
    """

    target: int
    update: dict[str, Any] | None = None
    ignore_localization: bool = False


def read_placed_value(value: Any) -> PlacedValue:
    """Reads ``target`` or ``{action: "paste", target, update}`` or ``{target, ignoreLocalization}``.

    Raises:
        Refusal: no number to place it.
    """
    if isinstance(value, Mapping):
        update = value.get("update")
        if update is not None and not isinstance(update, Mapping):
            raise Refusal(ErrorCode.INVALID_VALUE, "The update of a paste is a map of fields")
        paste = value.get("action") == "paste"
        fields = {str(k): v for k, v in update.items()} if paste and update else None
        return PlacedValue(_target(value.get("target")), fields, bool(value.get("ignoreLocalization")))
    return PlacedValue(_target(value))


def _target(value: Any) -> int:
    text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise Refusal(ErrorCode.INVALID_VALUE, "A page, or minus the uid of a record, is expected")
    return int(text)


def language_of_update(run: HandlerRun, table: str, row: Mapping[str, Any], update: dict[str, Any]) -> dict[str, Any]:
    """The update without a language that does not change; "all languages" stays when the default one is asked for."""
    name = run.ctx.table(table).language_field
    if not name or name not in update:
        return update
    wanted = str(update[name]).strip()
    if wanted == str(row.get(name)) or (row.get(name) == -1 and wanted == "0"):
        return {field: value for field, value in update.items() if field != name}
    return update


def collect_paste(run: HandlerRun, table: str, uid: int, update: dict[str, Any] | None) -> None:
    """Remembers the update of the command at work; the one of the command before is forgotten.

    A changed language also goes to all other records of translatable tables that were copied along.
    """
    run.paste_datamap = {}
    if update is None:
        return
    run.paste_datamap = {table: {str(uid): dict(update)}}
    name = run.ctx.table(table).language_field
    if not name or name not in update:
        return
    for copied_table, copies in run.copied.items():
        language_field = run.ctx.table(copied_table).language_field
        if not language_field:
            continue
        for copy in copies.values():
            if (copied_table, copy) != (table, uid):
                entry = run.paste_datamap.setdefault(copied_table, {}).setdefault(str(copy), {})
                entry[language_field] = update[name]
