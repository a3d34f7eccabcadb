"""The rule of each field type (SEMANTICS 5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from content_store.datahandler.run import RemapTask
from content_store.datahandler.values import choice, number, special, text
from content_store.datahandler.values.field import KEEP, FieldContext
from content_store.datahandler.values.flex import check_flex
from content_store.datahandler.values.relation import check_relation
from content_store.datahandler.values.unique import make_unique

Rule = Callable[[FieldContext, Any], Awaitable[Any]]

_RULES: Final[dict[str, Rule]] = {
    "input": text.check_input,
    "text": text.check_text,
    "email": text.check_email,
    "link": text.check_link,
    "color": text.check_color,
    "country": text.check_country,
    "password": text.check_password,
    "number": number.check_number,
    "datetime": number.check_datetime,
    "check": choice.check_check,
    "radio": choice.check_radio,
    "select": choice.check_items,
    "group": choice.check_items,
    "category": choice.check_items,
    "language": choice.check_language,
    "json": special.check_json,
    "uuid": special.check_uuid,
    "passthrough": special.check_plain,
    "user": special.check_plain,
    "folder": special.check_plain,
    "imageManipulation": special.check_plain,
}
# Stored values are copied as they are, also where the rule would not take them today.
_COPIED_PLAIN: Final = frozenset({"email", "link", "color", "country", "json"})


async def check_value(field: FieldContext, value: Any, tasks: list[RemapTask]) -> Any:
    """The value to store, or KEEP to leave the field alone.

    Args:
        field: where it goes.
        value: as submitted, raw JSON.
        tasks: gets what has to be written elsewhere or has to wait.

    Raises:
        Refusal: the value cannot be used.
    """
    kind = field.column.type
    if kind == "none":
        return KEEP
    if kind == "flex":
        return await check_flex(field, value, tasks, _check_plain)
    spec = field.column.relation
    if spec is not None:
        return await check_relation(field, value, spec, tasks)
    if _is_pointer(field) and isinstance(value, str) and "NEW" in value:
        tasks.append(
            RemapTask(field.table.name, field.record_id, field.column.name, [value], "value", field.status, True)
        )
        return KEEP
    if kind in ("input", "email"):
        checked = await _check_plain(field, value)
        return checked if checked is KEEP else await make_unique(field, checked)
    return await _check_plain(field, value)


async def _check_plain(field: FieldContext, value: Any) -> Any:
    kind = field.column.type
    if field.run.copy_mode and kind in _COPIED_PLAIN:
        return await special.check_plain(field, value)
    rule = _RULES.get(kind)
    return KEEP if rule is None else await rule(field, value)


def _is_pointer(field: FieldContext) -> bool:
    return field.column.name in (field.table.source_field, field.table.parent_field)
