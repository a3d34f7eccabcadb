"""Datamap and cmdmap as they come from outside: raw JSON, read strictly (S-42)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from content_store.datahandler.errors import ErrorCode
from content_store.datahandler.log import storable
from content_store.datahandler.result import EntryOutcome
from content_store.schema.model import Schema

_UID: Final = re.compile(r"[1-9][0-9]{0,18}")
_PLACEHOLDER: Final = re.compile(r"[A-Za-z0-9_.:\-]*NEW[A-Za-z0-9_.:\-]*")
_UID_LIMIT: Final = 2**63
_PLACEHOLDER_LIMIT: Final = 255

COMMANDS: Final = frozenset(
    {
        "move",
        "copy",
        "localize",
        "copyToLanguage",
        "inlineLocalizeSynchronize",
        "delete",
        "undelete",
        "discard",
        "version",
    }
)

DataMap = dict[str, dict[str, dict[str, Any]]]


def read_uid(raw: object) -> int | None:
    """A uid from a key: a positive integer, or its canonical text (no sign, no zero in front, below 2^63)."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int):
        return raw if 0 < raw < _UID_LIMIT else None
    if isinstance(raw, str) and _UID.fullmatch(raw) and int(raw) < _UID_LIMIT:
        return int(raw)
    return None


def is_placeholder(raw: object) -> bool:
    """Is it a usable placeholder: contains ``NEW``, no odd characters, not too long?"""
    return isinstance(raw, str) and len(raw) <= _PLACEHOLDER_LIMIT and bool(_PLACEHOLDER.fullmatch(raw))


@dataclass(frozen=True)
class ReadMaps:
    """What could be read, and what could not."""

    entries: DataMap
    errors: list[EntryOutcome]


def _error(table: object, record_id: object, operation: str, code: ErrorCode, message: str) -> EntryOutcome:
    return EntryOutcome(storable(str(table)), storable(str(record_id)), operation, "error", code=code, message=message)


def read_datamap(raw: object, schema: Schema) -> ReadMaps:
    """Entries with canonical keys, ``pages`` first, else in the order given; anything else is an error entry."""
    entries: DataMap = {}
    errors: list[EntryOutcome] = []
    for table, rows in _tables(raw, "datamap", ErrorCode.INVALID_DATAMAP, errors):
        if table not in schema:
            errors.append(_error(table, "", "datamap", ErrorCode.UNKNOWN_TABLE, "There is no such table"))
            continue
        if not isinstance(rows, Mapping):
            errors.append(_error(table, "", "datamap", ErrorCode.INVALID_DATAMAP, "A map of rows is expected"))
            continue
        for key, row in rows.items():
            uid = read_uid(key)
            operation = "update" if uid is not None else "new"
            if uid is None and not is_placeholder(key):
                message = "Neither a uid nor a placeholder with NEW"
                errors.append(_error(table, key, operation, ErrorCode.INVALID_RECORD_ID, message))
            elif not isinstance(row, Mapping):
                errors.append(_error(table, key, operation, ErrorCode.INVALID_ROW, "A map of fields is expected"))
            else:
                fields = {str(name): value for name, value in row.items()}
                entries.setdefault(table, {})[str(uid) if uid is not None else str(key)] = fields
    if "pages" in entries:
        entries = {"pages": entries["pages"], **entries}
    return ReadMaps(entries, errors)


def read_cmdmap(raw: object, schema: Schema) -> ReadMaps:
    """Commands with canonical keys, in the order given; anything else is an error entry."""
    entries: DataMap = {}
    errors: list[EntryOutcome] = []
    for table, rows in _tables(raw, "cmdmap", ErrorCode.INVALID_CMDMAP, errors):
        if table not in schema:
            errors.append(_error(table, "", "cmdmap", ErrorCode.UNKNOWN_TABLE, "There is no such table"))
            continue
        if not isinstance(rows, Mapping):
            errors.append(_error(table, "", "cmdmap", ErrorCode.INVALID_CMDMAP, "A map of records is expected"))
            continue
        for key, commands in rows.items():
            uid = read_uid(key)
            if uid is None:
                errors.append(_error(table, key, "cmdmap", ErrorCode.INVALID_RECORD_ID, "A uid is expected"))
                continue
            if not isinstance(commands, Mapping):
                errors.append(_error(table, key, "cmdmap", ErrorCode.INVALID_CMDMAP, "A map of commands is expected"))
                continue
            for command, value in commands.items():
                if command not in COMMANDS:
                    message = "There is no such command"
                    errors.append(_error(table, key, str(command), ErrorCode.UNKNOWN_COMMAND, message))
                else:
                    entries.setdefault(table, {}).setdefault(str(uid), {})[str(command)] = value
    return ReadMaps(entries, errors)


def _tables(raw: object, operation: str, code: ErrorCode, errors: list[EntryOutcome]) -> list[tuple[str, Any]]:
    if raw is None or raw == [] or raw == {}:
        return []
    if not isinstance(raw, Mapping):
        errors.append(_error("", "", operation, code, "A map of tables is expected"))
        return []
    return [(str(table), rows) for table, rows in raw.items()]


def without_deleted(datamap: DataMap, cmdmap: DataMap) -> DataMap:
    """The datamap without the records that the cmdmap deletes (SEMANTICS 2)."""
    kept: DataMap = {}
    for table, rows in datamap.items():
        gone = {uid for uid, commands in cmdmap.get(table, {}).items() if commands.get("delete")}
        remaining = {key: row for key, row in rows.items() if key not in gone}
        if remaining:
            kept[table] = remaining
    return kept
