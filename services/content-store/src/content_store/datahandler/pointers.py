"""Language and translation pointers of a row: read once, by everybody alike, and asked for like what they name.

Rights, placing, synchronization and the write all have to see the same number (SEMANTICS 3, 4, 7, 21): the values of a
submitted row are made canonical here before anybody looks at them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from content_store.datahandler.entries import is_placeholder
from content_store.datahandler.errors import ErrorCode, Refusal

if TYPE_CHECKING:
    from content_store.access.policy import Denial
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema

_DIGITS: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
_LIMIT: Final = 10**18


def read_number(value: object) -> int | None:
    """A whole number from JSON or a row: nothing is 0; ``None`` for what is no number of at most 18 digits.

    A text has to be canonical, as the scope demands it (S-42): no blanks, zeros in front, plus sign or exponent.
    """
    if value is None:
        return 0
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < _LIMIT else None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _LIMIT else None
    if not isinstance(value, str):
        return None
    if not value:
        return 0
    return int(value) if _DIGITS.fullmatch(value) else None


def pointer_fields(table: TableSchema) -> tuple[str, ...]:
    """Fields that name the record a translation belongs to, and the one it was made from."""
    return tuple(name for name in (table.parent_field, table.source_field) if name)


def canonical_pointers(table: TableSchema, submitted: Mapping[str, Any]) -> dict[str, Any]:
    """The row with language and pointers as numbers; a pointer may also be a placeholder.

    Raises:
        Refusal: a value that is neither.
    """
    row = dict(submitted)
    if table.language_field in row:
        row[table.language_field] = _canonical(table, table.language_field, row[table.language_field])
    for name in pointer_fields(table):
        if name not in row:
            continue
        value = row[name]
        if isinstance(value, str):
            value = value.removeprefix(f"{table.name}_")
        waits = isinstance(value, str) and "NEW" in value and is_placeholder(value)
        row[name] = value if waits else _canonical(table, name, value, lowest=0)
    return row


def _canonical(table: TableSchema, name: str, value: object, lowest: int = -1) -> int:
    number = read_number(value)
    if number is None or number < lowest:
        data = {"table": table.name, "field": name}
        raise Refusal(ErrorCode.INVALID_VALUE, "{table}.{field}: a whole number is expected", data)
    return number


def translated_uid(table: TableSchema, row: Mapping[str, Any]) -> int:
    """Uid of the record the row translates, 0 for one of the default language or without an original."""
    if table.language_field is None or table.parent_field is None:
        return 0
    language, parent = read_number(row.get(table.language_field)), read_number(row.get(table.parent_field))
    return parent if language and parent and language > 0 and parent > 0 else 0


def with_known_pointers(run: HandlerRun, table: TableSchema, submitted: Mapping[str, Any]) -> dict[str, Any]:
    """The row with pointers to records this run has written already; they need not wait for the end."""
    result = dict(submitted)
    for name in pointer_fields(table):
        value = result.get(name)
        if isinstance(value, str) and "NEW" in value:
            uid = run.uid_of(table.name, value)
            if uid is not None:
                result[name] = uid
    return result


# --- rights -------------------------------------------------------------------------------------------------------


def deny(denial: Denial | None) -> None:
    """Turns a missing right into a refusal.

    Raises:
        Refusal: there is a denial.
    """
    if denial is not None:
        raise Refusal(denial.code, denial.message, denial.data or {}, denied=True)


async def may_read_values(run: HandlerRun, table: TableSchema, row: Row) -> bool:
    """May the user see the page a record lies on, so that its values may go into another record?"""
    policy = run.ctx.policy
    if policy.user.admin:
        return True
    page = (translated_uid(table, row) or row["uid"]) if table.name == "pages" else row["pid"]
    denial = await policy.show_page(page) if page else await policy.update(table.name, row)
    return denial is None


async def check_originals(
    run: HandlerRun, table: TableSchema, uid: int, values: Mapping[str, Any], stored: Mapping[str, Any] | None = None
) -> None:
    """Asks for the right to edit the records that the pointers of a row newly name (SEMANTICS 7, 21).

    A translation takes values of its original and is shown in its place. What a copy brings along was named before.

    Args:
        run: the instance at work.
        table: of the row.
        uid: of the row, 0 for a new one.
        values: what the row will hold.
        stored: the row as it is.

    Raises:
        Refusal: no such record, the row itself, or a missing right.
    """
    if run.copy_mode:
        return
    before = stored or {}
    language = table.language_field or ""
    # A pointer of a record in the default language decides nothing until it becomes a translation.
    wakes = (read_number(values.get(language)) or 0) > 0 >= (read_number(before.get(language)) or 0)
    for name in pointer_fields(table):
        named = read_number(values.get(name)) or 0
        if named <= 0 or (named == (read_number(before.get(name)) or 0) and not wakes):
            continue
        data = {"table": table.name, "uid": named}
        if named == uid:
            raise Refusal(ErrorCode.INVALID_VALUE, "{table}:{uid} cannot be its own original", data)
        row = await run.ctx.reader.stored(table.name, named)
        if row is None:
            raise Refusal(ErrorCode.RECORD_NOT_FOUND, "There is no record {table}:{uid}", data)
        deny(await run.ctx.policy.update(table.name, row, with_pages="pages" in run.root.datamap))


async def check_changed_pointers(run: HandlerRun, table: TableSchema, row: Row, values: Mapping[str, Any]) -> None:
    """Asks for the rights an insert with these pointers would need, where an update changes them.

    Args:
        run: the instance at work.
        table: of the record.
        row: as it is stored.
        values: columns that will be written.

    Raises:
        Refusal: a missing right, no such original, or a page that would lie apart from the page it translates.
    """
    names = (*pointer_fields(table), table.language_field or "")
    after = {**row, **{name: values[name] for name in names if name in values}}
    if all((read_number(after.get(name)) or 0) == (read_number(row.get(name)) or 0) for name in names):
        return
    await check_originals(run, table, row["uid"], after, row)
    if table.name != "pages":
        return
    original = translated_uid(table, after)
    if original:
        page = await run.ctx.reader.record("pages", original)
        if page is None:
            raise Refusal(ErrorCode.PAGE_NOT_FOUND, "There is no page {page} to translate", {"page": original})
        if page["pid"] != row["pid"]:
            data = {"uid": row["uid"], "page": original}
            message = "Page {uid} does not lie beside page {page}, so it cannot be its translation"
            raise Refusal(ErrorCode.INVALID_VALUE, message, data)
    elif translated_uid(table, row):
        # It becomes a page of its own, where it lies.
        deny(await run.ctx.policy.insert("pages", row["pid"], after))


async def check_followed(run: HandlerRun, table: TableSchema, row: Row) -> None:
    """Asks for the right to read what a translation is told to follow (its ``l10n_state`` is submitted).

    Raises:
        Refusal: the original or the source lies where the user may not look.
    """
    if run.copy_mode or run.ctx.policy.user.admin:
        return
    for name in pointer_fields(table):
        named = await run.ctx.reader.stored(table.name, read_number(row.get(name)) or 0)
        if named is not None and not await may_read_values(run, table, named):
            data = {"table": table.name, "uid": named["uid"]}
            raise Refusal("page_permission", "The user may not read {table}:{uid}", data, denied=True)
