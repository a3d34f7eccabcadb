"""Values on their way into and out of a column (pure)."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from content_store.records.errors import ValueNotStorable
from content_store.schema.model import DbColumn

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
_DECIMAL_LIMIT: Final = Decimal(10) ** 10


class _Unfit(Exception):
    """Carries the reason to :func:`cast_for_column`."""


def cast_for_column(table: str, column: DbColumn, value: Any) -> Any:
    """The value as the driver wants it for this column.

    Raises:
        ValueNotStorable: NUL bytes, 2^63, a text that is no number, a list where a scalar belongs, too long.
    """
    if value is None:
        if not column.nullable:
            raise ValueNotStorable(table, column.name, "null")
        return None
    try:
        return _CASTS[column.type](column, value)
    except _Unfit as unfit:
        raise ValueNotStorable(table, column.name, str(unfit)) from None


def _int(_: DbColumn, value: Any) -> int:
    number: int
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value) and value.is_integer()):
        number = int(value)
    elif isinstance(value, str):
        text = value.strip()
        # Longer texts are no 64 bit number, and int() of a very long text is slow.
        if len(text) > 20:
            raise _Unfit("range")
        try:
            number = int(text or "0") if text.isascii() and "_" not in text else int("x")
        except ValueError:
            raise _Unfit("type") from None
    else:
        raise _Unfit("type")
    if not INT64_MIN <= number <= INT64_MAX:
        raise _Unfit("range")
    return number


def _text(column: DbColumn, value: Any) -> str:
    if isinstance(value, bool):
        text = "1" if value else ""
    elif isinstance(value, str):
        text = value
    elif isinstance(value, int | float | Decimal):
        text = str(value)
    else:
        raise _Unfit("type")
    if "\x00" in text:
        raise _Unfit("nul")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _Unfit("encoding") from None
    if column.length is not None and len(text) > column.length:
        raise _Unfit("length")
    return text


def _decimal(_: DbColumn, value: Any) -> Decimal:
    if isinstance(value, bool | list | dict):
        raise _Unfit("type")
    try:
        number = Decimal(str(value).strip() or "0")
    except InvalidOperation:
        raise _Unfit("type") from None
    if not number.is_finite() or abs(number) >= _DECIMAL_LIMIT:
        raise _Unfit("range")
    return number


def _float(_: DbColumn, value: Any) -> float:
    if isinstance(value, list | dict):
        raise _Unfit("type")
    try:
        number = float(value or 0)
    except (TypeError, ValueError, OverflowError):
        raise _Unfit("type") from None
    if not math.isfinite(number):
        raise _Unfit("range")
    return number


def _json(_: DbColumn, value: Any) -> str:
    if isinstance(value, str):
        try:
            json.loads(value)
        except (ValueError, RecursionError):
            raise _Unfit("type") from None
        text = value
    else:
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise _Unfit("type") from None
    # jsonb has no NUL, escaped or not.
    if "\\u0000" in text or "\x00" in text:
        raise _Unfit("nul")
    return text


def _parsed(parse: Callable[[str], Any]) -> Callable[[DbColumn, Any], Any]:
    def cast(_: DbColumn, value: Any) -> Any:
        if not isinstance(value, str):
            raise _Unfit("type")
        try:
            return parse(value)
        except ValueError:
            raise _Unfit("type") from None

    return cast


def _naive(value: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(value)
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)


_CASTS: Final[dict[str, Callable[[DbColumn, Any], Any]]] = {
    "int": _int,
    "string": _text,
    "text": _text,
    "blob": _text,
    "decimal": _decimal,
    "float": _float,
    "json": _json,
    "datetime": _parsed(_naive),
    "date": _parsed(dt.date.fromisoformat),
    "time": _parsed(dt.time.fromisoformat),
}


def from_database(value: Any) -> Any:
    """A value the driver returned, as the handler works with it: int, float, str or None."""
    if value is None or isinstance(value, int | str | float):
        return value
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return json.dumps(value) if isinstance(value, list | dict) else str(value)
