"""Labels of copies and translations (SEMANTICS 9, 11)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from content_store.datahandler.tsconfig import flag, table_setting

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.schema.model import Column, TableSchema

_PREFIXED_TYPES = frozenset({"input", "text", "email", "link"})


async def prefix_language(
    run: HandlerRun, table: TableSchema, column: Column, value: Any, language: int, page: int
) -> Any:
    """The value with "[Translate to <language>:] " in front; inside of the first tag where a text starts with one."""
    if column.type not in _PREFIXED_TYPES or not isinstance(value, str) or not value:
        return value
    settings = await run.ctx.tsconfig(page)
    disabled = table_setting(settings, table.name, "disablePrependAtCopy")
    message = settings.get("TCEMAIN.translateToMessage", run.ctx.options.translate_label)
    if not message or (disabled is not None and disabled not in ("", "0")):
        return value
    known = await run.ctx.language_on(page, language)
    title = known.title if known is not None else ""
    for hook in run.ctx.hooks:
        value = await hook.translate_copy_action(run, table.name, column.name, value, title)
    prefix = "[" + message.replace("%s", title).replace("{language}", title) + "] "
    if column.type == "text":
        tag = re.match(r"<[^>]+>", value)
        if tag is not None:
            return tag.group(0) + prefix + value[tag.end() :]
    return prefix + value


async def copy_label(run: HandlerRun, table: TableSchema, value: str, page: int) -> str:
    """The label with " (copy N)" behind it when another record of the page has it already."""
    name = table.label_field
    template = run.ctx.options.copy_label
    if not name or name not in table.db_columns or not value:
        return value
    pattern = re.escape(" " + template).replace(re.escape("{number}"), "[0-9]+")
    stem = re.sub(f"(?:{pattern})+$", "", value)
    where: dict[str, Any] = {"pid": page, name: value}
    if table.delete_field:
        where[table.delete_field] = 0
    # The label counts as taken by what lies on the page under the bare name.
    where[name] = stem
    if not await run.ctx.gateway.select(table.name, where, limit=1):
        return stem
    attempts = run.ctx.options.max_unique_attempts
    candidates = [f"{stem} {template.replace('{number}', str(number))}" for number in range(1, attempts + 1)]
    rows = await run.ctx.gateway.select(table.name, {**where, name: candidates})
    taken = {row[name] for row in rows}
    return next((c for c in candidates if c not in taken), candidates[-1])


def hides_copies(settings: dict[str, str], table: str) -> bool:
    """Are copies hidden, as far as TSconfig has a say?"""
    specific = f"TCEMAIN.table.{table}.disableHideAtCopy"
    if specific in settings:
        return not flag(settings, specific)
    return not flag(settings, "TCEMAIN.default.disableHideAtCopy")
