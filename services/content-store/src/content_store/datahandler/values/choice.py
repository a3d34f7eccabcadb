"""Choices: check, radio, select without records, language (SEMANTICS 5)."""

from __future__ import annotations

from typing import Any

from content_store.datahandler.errors import Refusal
from content_store.datahandler.relations.csv import split_list
from content_store.datahandler.values.field import KEEP, FieldContext, as_int, as_text, empty_relation


async def check_check(field: FieldContext, value: Any) -> Any:
    """``check``: a bit mask within the number of items; limits on how many records may be checked."""
    number = as_int(field, value)
    items = field.config.get("item_values")
    count = items if isinstance(items, int) else len(items) if isinstance(items, list) else 1
    # Items that are computed are not known here: the mask is only kept from being negative.
    highest = 2 ** max(count, 1) - 1 if not field.config.get("itemsProcFunc") else 2**31 - 1
    number = min(max(number, 0), highest)
    if number and not field.run.copy_mode:
        await _limit_checked(field, "maximumRecordsChecked", None)
        await _limit_checked(field, "maximumRecordsCheckedInPid", field.page)
    return number


async def _limit_checked(field: FieldContext, rule: str, page: int | None) -> None:
    limit = int((field.config.get("validation") or {}).get(rule) or 0)
    if rule not in field.column.evals or limit <= 0:
        return
    where: dict[str, Any] = {} if page is None else {"pid": page}
    if field.table.delete_field:
        where[field.table.delete_field] = 0
    name = '"' + field.column.name.replace('"', '""') + '"'
    rows = await field.run.ctx.gateway.select(field.table.name, where, limit=limit + 1, extra=f"{name} <> 0")
    if len([row for row in rows if row["uid"] != field.uid]) >= limit:
        raise field.refuse(f"at most {limit} records may be checked")


async def check_radio(field: FieldContext, value: Any) -> Any:
    """``radio``: only listed values; of computed items any."""
    text = as_text(field, value)
    items = [str(item) for item in field.config.get("item_values") or []]
    if text in items or field.config.get("itemsProcFunc") or field.run.copy_mode:
        return text
    raise field.refuse("this value is not among the choices")


async def check_items(field: FieldContext, value: Any) -> Any:
    """``select`` without records: the submitted values, without duplicates, cut to ``maxitems``."""
    if value is None and field.column.nullable:
        return None
    tokens = limit_tokens(field, choose_tokens(field, split_list(value)))
    return ",".join(tokens) if tokens else empty_item(field, value)


def empty_item(field: FieldContext, value: Any) -> Any:
    """An empty choice: the empty text itself where it may be chosen."""
    items = field.config.get("item_values")
    if isinstance(items, list) and "" in [str(i) for i in items]:
        return ""
    if value not in (None, "", [], False):
        return as_text(field, value)
    default = empty_relation(field, counted=False)
    # The default stands for an empty choice, so it has to be allowed like a choice.
    choose_tokens(field, split_list(default))
    return default


def choose_tokens(field: FieldContext, tokens: list[str]) -> list[str]:
    """Without duplicates (unless ``multiple``), with exclusive keys alone, within the user's explicit values."""
    if not tokens:
        return tokens
    if not field.config.get("multiple"):
        tokens = list(dict.fromkeys(tokens))
    exclusive = [k.strip() for k in str(field.config.get("exclusiveKeys") or "").split(",") if k.strip()]
    alone = next((t for t in tokens if t in exclusive), None)
    if alone is not None:
        tokens = [alone]
    if field.config.get("authMode") or (field.table.name == "pages" and field.column.name == "doktype"):
        policy = field.run.ctx.policy
        for token in tokens:
            if not policy.may_use_value(field.table.name, field.column.name, token):
                raise Refusal(
                    "explicit_value",
                    "{table}.{field}: value {value} may not be used",
                    {"table": field.table.name, "field": field.column.name, "value": token},
                    denied=True,
                )
    return tokens


def limit_tokens(field: FieldContext, tokens: list[str]) -> list[str]:
    """Cut to ``maxitems``; a single choice keeps the first value."""
    if not tokens:
        return tokens
    single = field.column.type == "select" and field.config.get("renderType") == "selectSingle"
    limit = int(field.config.get("maxitems") or (1 if single else 0))
    return tokens[:limit] if limit > 0 else tokens


async def check_language(field: FieldContext, value: Any) -> Any:
    """``language``: -1 for all, 0, or a language the user may use; dropped otherwise."""
    number = as_int(field, value)
    if number < -1:
        raise field.refuse("there is no such language")
    return number if field.run.ctx.policy.may_use_language(number) else KEEP
