"""Structured values: json, uuid, image crops, folders, passthrough (SEMANTICS 5)."""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING, Any, Final

from content_store.datahandler.values.field import KEEP, FieldContext, as_text

if TYPE_CHECKING:
    from content_store.schema.model import Column

_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


async def check_json(field: FieldContext, value: Any) -> Any:
    """``json``: any JSON value, or its text."""
    if value is None or value == "":
        return KEEP if field.column.required else None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise field.refuse("valid JSON is expected") from None
    try:
        return json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        raise field.refuse("valid JSON is expected") from None


async def check_uuid(field: FieldContext, value: Any) -> Any:
    """``uuid``: a valid one; a required field that is empty (or holds something else) gets a new one."""
    text = as_text(field, value).strip()
    if _UUID.fullmatch(text):
        return text.lower()
    # Fields are required unless the configuration says otherwise.
    if field.config.get("required", True):
        return new_uuid(field.column)
    return ""


def new_uuid(column: Column) -> str:
    """A fresh UUID of the configured version."""
    version = int(column.config.get("version") or 4)
    if version == 7:
        from uuid_utils import uuid7

        return str(uuid7())
    return str(uuid.uuid4())


async def check_plain(field: FieldContext, value: Any) -> Any:
    """``passthrough``, ``user``, ``folder``, crops: stored as they come; structures as JSON."""
    if isinstance(value, dict | list):
        if field.column.type == "imageManipulation":
            return json.dumps(value)
        raise field.refuse("a single value is expected")
    if value is None:
        column = field.table.db_columns.get(field.column.name)
        return None if column is None or column.nullable else column.default
    return value
