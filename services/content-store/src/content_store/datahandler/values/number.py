"""Numbers and times (SEMANTICS 5)."""

from __future__ import annotations

import datetime as dt
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from content_store.datahandler.values.field import FieldContext, as_int, as_text


async def check_number(field: FieldContext, value: Any) -> Any:
    """``number``: an integer, or a decimal with two places as text; clamped to ``range``."""
    if value is None or value == "":
        if field.column.nullable:
            return None
        value = 0
    if field.config.get("format") == "decimal":
        return _decimal(field, value)
    return _clamp(field, as_int(field, value))


def _decimal(field: FieldContext, value: Any) -> str:
    try:
        number = Decimal(as_text(field, value).strip().replace(",", ".") or "0")
    except InvalidOperation:
        raise field.refuse("a number is expected") from None
    if not number.is_finite() or abs(number) >= Decimal(10) ** 10:
        raise field.refuse("the number is out of range")
    limits = field.config.get("range") or {}
    if limits.get("lower") is not None:
        number = max(number, Decimal(str(limits["lower"])))
    if limits.get("upper") is not None:
        number = min(number, Decimal(str(limits["upper"])))
    return str(number.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))


def _clamp(field: FieldContext, number: int) -> int:
    limits = field.config.get("range") or {}
    if limits.get("lower") is not None:
        number = max(number, int(limits["lower"]))
    if limits.get("upper") is not None:
        number = min(number, int(limits["upper"]))
    return number


async def check_datetime(field: FieldContext, value: Any) -> Any:
    """``datetime``: Unix seconds from a number or ISO 8601 text; with ``dbType`` the text of that type."""
    native = field.config.get("dbType")
    if value is None or value == "":
        return None if field.column.nullable or native else 0
    if native in ("datetime", "date", "time"):
        return _native(field, str(native), value)
    text = as_text(field, value).strip()
    numeric = text.lstrip("+-").replace(".", "", 1).isdigit()
    seconds = as_int(field, text) if numeric else _seconds(field, text)
    # 0 means "no time" and is not pushed into the range.
    return _clamp(field, seconds) if seconds else 0


def _seconds(field: FieldContext, text: str) -> int:
    if field.config.get("format") in ("time", "timesec"):
        try:
            clock = dt.time.fromisoformat(text)
        except ValueError:
            raise field.refuse("a time is expected") from None
        return clock.hour * 3600 + clock.minute * 60 + clock.second
    try:
        moment = dt.datetime.fromisoformat(text)
        # A time without an offset is UTC.
        return int((moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp())
    except (ValueError, OverflowError):
        raise field.refuse("a date is expected") from None


def _native(field: FieldContext, native: str, value: Any) -> str:
    text = as_text(field, value).strip()
    try:
        if native == "time":
            return dt.time.fromisoformat(text).isoformat()
        if text.lstrip("-").isdigit():
            moment = dt.datetime.fromtimestamp(int(text), dt.UTC)
        else:
            moment = dt.datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
        return moment.date().isoformat() if native == "date" else moment.isoformat(sep=" ")
    except (ValueError, OverflowError, OSError):
        raise field.refuse("a date is expected") from None
