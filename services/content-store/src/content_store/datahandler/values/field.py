"""What a value rule is told, and the small conversions they share."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from content_store.datahandler.errors import ErrorCode, Refusal

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import Column, TableSchema


_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


class _Keep:
    def __repr__(self) -> str:
        return "KEEP"


#: A rule answers with it when the field is to be left alone.
KEEP: Final = _Keep()


# One per field and entry: a frozen one takes three times as long to make.
@dataclass(slots=True)
class FieldContext:
    """Where a value is going; nobody changes it.

    Attributes:
        run: the instance at work.
        table: of the record.
        column: with the changes of the record type.
        record_id: uid or placeholder.
        uid: 0 for a new record.
        status: ``new`` or ``update``.
        page: where the record lies or will lie.
        current: stored row of an update.
        language: of the record.
    """

    run: HandlerRun
    table: TableSchema
    column: Column
    record_id: str
    uid: int
    status: Literal["new", "update"]
    page: int
    current: Row | None
    language: int = 0

    @property
    def config(self) -> Mapping[str, Any]:
        """Configuration of the field."""
        return self.column.config

    def refuse(self, message: str) -> Refusal:
        """The value cannot be used; the message says why."""
        return Refusal(
            ErrorCode.INVALID_VALUE,
            "{table}.{field}: " + message,
            {"table": self.table.name, "field": self.column.name},
        )


def is_finite(value: Any) -> bool:
    """Is no number in the value, however deep, infinite or none? JSON has no such numbers, and neither has a column."""
    pending = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, float) and not math.isfinite(found):
            return False
        if isinstance(found, Mapping):
            pending.extend(found.values())
        elif isinstance(found, list | tuple):
            pending.extend(found)
    return True


def as_text(field: FieldContext, value: Any) -> str:
    """A scalar as text: ``True`` is 1, ``False`` and NULL are empty.

    Raises:
        Refusal: a list or map where a scalar belongs.
    """
    if value is None or value is False:
        return ""
    if value is True:
        return "1"
    if isinstance(value, float) and not math.isfinite(value):
        raise field.refuse("a finite number is expected")
    if isinstance(value, str | int | float):
        return str(value)
    raise field.refuse("a single value is expected")


def as_int(field: FieldContext, value: Any) -> int:
    """A scalar as integer; decimals lose what is behind the point, an empty text is 0.

    Raises:
        Refusal: a text that is no number, or a number beyond 64 bits.
    """
    text = as_text(field, value).strip()
    if not text:
        return 0
    if len(text) > 40:
        raise field.refuse("the number is too long")
    try:
        number = int(text) if _INTEGER.fullmatch(text) else int(float(text))
    except (ValueError, OverflowError):
        raise field.refuse("a number is expected") from None
    if not -(2**63) <= number < 2**63:
        raise field.refuse("the number is out of range")
    return number


def empty_relation(field: FieldContext, *, counted: bool) -> Any:
    """What an empty relation is stored as: 0 where the field counts, else the default, else an empty text."""
    if counted:
        return 0
    default = field.config.get("default")
    if default is not None:
        return default
    stored = field.table.db_columns.get(field.column.name)
    return 0 if stored is not None and stored.type == "int" else ""
