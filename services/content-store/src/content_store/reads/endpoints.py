"""Reading routes: page tree, records, schema, sites."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from remit_contracts.records import MAX_UID, TABLE_PATTERN
from service_kit.problems import ValidationProblem, problem_responses
from service_kit.routing import Router

from content_store.deps import READER_PROBLEMS, ReadingDependency, Services
from content_store.errors import (
    CursorInvalidError,
    FieldUnknownError,
    FilterInvalidError,
    LanguageNotFoundError,
    PageNotFoundError,
    RecordNotFoundError,
    TableNotFoundError,
    WorkspaceNotFoundError,
)
from content_store.reads import describing, service
from content_store.reads.schemas import (
    PageTreeView,
    RecordsView,
    RecordView,
    SitesView,
    TablesView,
    TableView,
)

router = Router(prefix="/v1", tags=["reading"])
MAX_TREE_DEPTH = 99
MAX_TREE_PAGES = 2000

TablePath = Annotated[str, Path(pattern=TABLE_PATTERN)]
UidPath = Annotated[int, Path(ge=1, le=MAX_UID)]
CursorQuery = Annotated[str | None, Query(max_length=200)]
LanguageQuery = Annotated[int, Query(ge=0, le=9999)]
_PROBLEMS = (*READER_PROBLEMS, WorkspaceNotFoundError, ValidationProblem)


def page_size(limit: int, found: Services) -> int:
    """The rows of one page of a list: what is asked for, but never more than the setting allows."""
    return min(limit, found.settings.page_limit)


@router.get("/pages/tree", responses=problem_responses(*_PROBLEMS, PageNotFoundError, LanguageNotFoundError))
async def tree(
    reading: ReadingDependency,
    root: Annotated[int, Query(ge=0, le=MAX_UID, description="page to begin with; 0 begins with the mounts")] = 0,
    depth: Annotated[int, Query(ge=0, le=MAX_TREE_DEPTH)] = 1,
    language: LanguageQuery = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_TREE_PAGES)] = 500,
) -> PageTreeView:
    """Pages in the order of the tree."""
    return await service.page_tree(reading, root, depth, language, limit)


@router.get(
    "/records/{table}",
    responses=problem_responses(
        *_PROBLEMS, TableNotFoundError, LanguageNotFoundError, FieldUnknownError, FilterInvalidError, CursorInvalidError
    ),
)
async def records(
    table: TablePath,
    reading: ReadingDependency,
    pid: Annotated[int | None, Query(ge=0, le=MAX_UID)] = None,
    language: Annotated[int | None, Query(ge=-1, le=9999)] = None,
    filter: Annotated[list[str] | None, Query(description="field:value, all have to fit")] = None,
    fields: Annotated[
        str | None, Query(max_length=5000, description="comma separated; uid and pid always come")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 50,
    cursor: CursorQuery = None,
) -> RecordsView:
    """Rows of a table the reader may read, in the order of their page, else by uid."""
    return await service.list_records(
        reading,
        table,
        pid=pid,
        language=language,
        filters=filter or [],
        fields=fields,
        limit=page_size(limit, reading.services),
        cursor=cursor,
    )


@router.get("/records/{table}/{uid}", responses=problem_responses(*_PROBLEMS, TableNotFoundError, RecordNotFoundError))
async def record(table: TablePath, uid: UidPath, reading: ReadingDependency) -> RecordView:
    """One record with its translations. Not there and not readable are the same answer."""
    return await service.one_record(reading, table, uid)


@router.get("/schema", responses=problem_responses(*_PROBLEMS))
async def schema(reading: ReadingDependency) -> TablesView:
    """Tables the reader may read."""
    return TablesView(tables=describing.described_tables(reading.schema, reading.viewer))


@router.get("/schema/{table}", responses=problem_responses(*_PROBLEMS, TableNotFoundError))
async def schema_of_table(table: TablePath, reading: ReadingDependency) -> TableView:
    """A table with the fields the reader may use."""
    found = service.readable_table(reading, table)
    return describing.described_table(reading.schema, found, reading.viewer)


@router.get("/sites", responses=problem_responses(*_PROBLEMS))
async def sites(reading: ReadingDependency) -> SitesView:
    """Sites the reader works in, with their languages."""
    found = reading.services
    views = await describing.readable_sites(found.reads, found.site_list, reading.viewer, found.schema_name)
    return SitesView(sites=views)
