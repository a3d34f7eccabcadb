"""Reading for a person or for a service on a person's behalf. What may not be read is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from content_store.access.rules import may_select_table, may_use_language
from content_store.deps import Reading
from content_store.errors import (
    FieldUnknownError,
    FilterInvalidError,
    LanguageNotFoundError,
    PageNotFoundError,
    RecordNotFoundError,
    TableNotFoundError,
)
from content_store.reads.cursors import decode_cursor, encode_cursor
from content_store.reads.repository import RecordReader
from content_store.reads.rows import as_json, readable_fields
from content_store.reads.schemas import PageNode, PageTitle, PageTreeView, RecordsView, RecordView
from content_store.reads.tree import TreeReader
from content_store.records.hashing import record_hash
from content_store.schema.model import TableSchema

MAX_FILTERS = 10
#: Rows looked at by one statement, and statements of one page of a list.
WINDOW = 500
MAX_WINDOWS = 4


def readable_table(reading: Reading, name: str) -> TableSchema:
    """The table.

    Raises:
        TableNotFoundError: there is none, or the reader may not read it.
    """
    table = reading.schema.tables.get(name)
    if table is None or not may_select_table(name, reading.viewer.user):
        raise TableNotFoundError(table=name)
    return table


def reader_of(reading: Reading) -> RecordReader:
    """Statements for this reader."""
    return RecordReader(reading.services.reads, reading.viewer, reading.services.schema_name)


async def list_records(
    reading: Reading,
    table_name: str,
    *,
    pid: int | None,
    language: int | None,
    filters: Sequence[str],
    fields: str | None,
    limit: int,
    cursor: str | None,
) -> RecordsView:
    """Rows of a table, page by page: in the order of the page where ``pid`` is given, else by uid.

    Args:
        reading: who, and in which workspace.
        table_name: to read.
        pid: page the rows lie on.
        language: their language.
        filters: ``field:value`` each.
        fields: comma separated; none means all that may be read.
        limit: rows at most.
        cursor: from the page before.

    Raises:
        TableNotFoundError, FieldUnknownError, FilterInvalidError, LanguageNotFoundError, CursorInvalidError: as named.
    """
    table = readable_table(reading, table_name)
    allowed = readable_fields(table, reading.viewer.user)
    chosen = _chosen(table, fields, allowed)
    wanted = _filters(table, filters, allowed)
    if pid is not None:
        wanted.append(("pid", str(pid)))
    if language is not None:
        if not may_use_language(language, reading.viewer.user):
            raise LanguageNotFoundError(wanted=language)
        if table.language_field is None:
            raise FieldUnknownError(table=table.name, field="language")
        wanted.append((table.language_field, str(language)))
    order = [table.sort_field, "uid"] if pid is not None and table.sort_field else ["uid"]
    after = decode_cursor(cursor, len(order)) if cursor is not None else None
    rows, more = await _page(reading, table, wanted, order, after, limit)
    return RecordsView(
        records=[as_json(row, chosen) for row in rows], next_cursor=encode_cursor(more) if more else None
    )


async def _page(
    reading: Reading,
    table: TableSchema,
    filters: Sequence[tuple[str, str]],
    order: Sequence[str],
    after: list[int] | None,
    limit: int,
) -> tuple[list[Mapping[str, Any]], list[int] | None]:
    """Rows of a page and the order values the next one begins after.

    Where little of a table may be read, a page ends after some windows with fewer rows, and the cursor leads on.
    """
    found: list[Mapping[str, Any]] = []
    reader = reader_of(reading)
    for _ in range(MAX_WINDOWS):
        window = await reader.window(table, filters, order, after, max(WINDOW, limit + 1))
        found += window.rows
        after = window.last
        if len(found) > limit:
            page = found[:limit]
            return page, [page[-1][name] for name in order]
        if after is None:
            break
    return found, after


async def one_record(reading: Reading, table_name: str, uid: int) -> RecordView:
    """A record with its translations.

    Raises:
        TableNotFoundError: as named.
        RecordNotFoundError: it is not there, or the reader may not read it.
    """
    table = readable_table(reading, table_name)
    rows = await reader_of(reading).record_with_translations(table, uid)
    if not rows or rows[0]["uid"] != uid:
        raise RecordNotFoundError(table=table.name, uid=uid)
    fields = readable_fields(table, reading.viewer.user)
    record = rows[0]
    page = PageTitle(uid=record["_page"], title=record["_page_title"] or "") if record["_page"] else None
    return RecordView(
        record=as_json(record, fields),
        hash=record_hash(table, record),
        translations=[as_json(row, fields) for row in rows[1:]],
        page=page,
    )


async def page_tree(reading: Reading, root: int, depth: int, language: int, limit: int) -> PageTreeView:
    """The pages below a page, or below the reader's mounts.

    Raises:
        PageNotFoundError: the root is not there, or the reader may not see it.
        LanguageNotFoundError: the reader may not work in the language.
    """
    pages = reading.schema.tables["pages"]
    if not may_use_language(language, reading.viewer.user):
        raise LanguageNotFoundError(wanted=language)
    tree = TreeReader(reading.services.reads, reading.viewer, pages, reading.services.schema_name)
    rows = await tree.branch(root, depth, language, limit)
    if root and not rows:
        raise PageNotFoundError(page=root)
    return PageTreeView(pages=[_node(row) for row in rows[:limit]], truncated=len(rows) > limit)


def _node(row: Mapping[str, Any]) -> PageNode:
    return PageNode(
        uid=row["uid"],
        pid=row["pid"],
        title=row["title"] or "",
        hidden=bool(row["hidden"]),
        doktype=row["doktype"],
        level=row["level"],
        slug=row["slug"],
        has_children=row["has_children"],
        translated=row["translated"],
    )


def _chosen(table: TableSchema, fields: str | None, allowed: Sequence[str]) -> list[str]:
    if fields is None:
        return list(allowed)
    names = [name.strip() for name in fields.split(",") if name.strip()]
    for name in names:
        if name not in allowed:
            raise FieldUnknownError(table=table.name, field=name)
    return list(dict.fromkeys(["uid", "pid", *names]))


def _filters(table: TableSchema, filters: Sequence[str], allowed: Sequence[str]) -> list[tuple[str, str]]:
    if len(filters) > MAX_FILTERS:
        raise FilterInvalidError(field="")
    found: list[tuple[str, str]] = []
    for text in filters:
        name, separator, value = text.partition(":")
        if not separator:
            raise FilterInvalidError(field=name)
        if name not in allowed:
            raise FieldUnknownError(table=table.name, field=name)
        found.append((name, value))
    return found
