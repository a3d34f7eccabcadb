"""The assignment scope: which pages and records a run may write (S-01 to S-14)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import ConfigDict, Field, field_validator

from remit_contracts.base import Contract
from remit_contracts.records import RecordReference, TableName, Uid

MAX_DEPTH = 99
MAX_PAGES = 50
MAX_RECORDS = 200
MAX_TABLES = 50
MAX_LANGUAGES = 50

Depth = Annotated[int, Field(strict=True, ge=0, le=MAX_DEPTH)]
Language = Annotated[int, Field(strict=True, ge=-1, le=9999)]


class ScopeReason(StrEnum):
    """Why a write is refused by the scope (S-23)."""

    OUTSIDE_SCOPE = "outside_scope"
    TABLE_NOT_ALLOWED = "table_not_allowed"
    LANGUAGE_NOT_ALLOWED = "language_not_allowed"
    SUBTREE_OUTSIDE_SCOPE = "subtree_outside_scope"
    SCOPE_REQUIRED = "scope_required"
    SCOPE_UNRESOLVABLE = "scope_unresolvable"
    SCOPE_REMOTE_WRITE = "scope_remote_write"
    SCOPE_FILES_WRITE = "scope_files_write"


class ScopeContract(Contract):
    """Part of a scope. A key it does not know is refused everywhere: it may be a limit, and without it the scope is wider."""

    model_config = ConfigDict(extra="forbid")


class PageRoot(ScopeContract):
    """A page and how far below it: 0 is the page and the records on it, 1 adds its direct subpages (S-01)."""

    page: Uid
    depth: Depth = 0


class AssignmentScope(ScopeContract):
    """What a run may write. Names neither page nor record: admits nothing (S-02). Lists only narrow (S-06)."""

    pages: Annotated[tuple[PageRoot, ...], Field(max_length=MAX_PAGES)] = ()
    records: Annotated[tuple[RecordReference, ...], Field(max_length=MAX_RECORDS)] = ()
    tables: Annotated[tuple[TableName, ...], Field(max_length=MAX_TABLES)] | None = None
    languages: Annotated[tuple[Language, ...], Field(max_length=MAX_LANGUAGES)] | None = None

    @classmethod
    def none(cls) -> Self:
        """The scope that admits nothing."""
        return cls()

    @classmethod
    def for_page(cls, uid: int, depth: int = 0) -> Self:
        """One page and its subpages down to ``depth`` levels."""
        return cls(pages=(PageRoot(page=uid, depth=depth),))

    @classmethod
    def for_record(cls, table: str, uid: int) -> Self:
        """One record, with its translations and, for a file, its metadata (S-03)."""
        return cls(records=(RecordReference(table=table, uid=uid),))

    @property
    def admits_nothing(self) -> bool:
        """Neither a page nor a record is named."""
        return not self.pages and not self.records


class EffectiveAssignmentScope(ScopeContract):
    """The scope one call is held to: the run's scope capped by the configuration as it is now; never stored (S-14)."""

    pages: tuple[PageRoot, ...] = ()
    records: tuple[RecordReference, ...] = ()
    tables: tuple[TableName, ...] | None = None
    languages: tuple[Language, ...] | None = None

    @field_validator("pages", "records", "tables", "languages", mode="before")
    @classmethod
    def _sequence(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @classmethod
    def of(cls, scope: AssignmentScope, max_depth: int = MAX_DEPTH) -> Self:
        """Cap the depth of every page root by ``max_depth`` (S-13)."""
        pages = tuple(PageRoot(page=root.page, depth=min(root.depth, max_depth)) for root in scope.pages)
        return cls(pages=pages, records=scope.records, tables=scope.tables, languages=scope.languages)

    @classmethod
    def none(cls) -> Self:
        """The scope that admits nothing; what a call without a scope gets where one is required (S-12)."""
        return cls()


def effective_scope(
    scope: AssignmentScope | None, *, required: bool, max_depth: int
) -> EffectiveAssignmentScope | None:
    """The scope of one call (S-12 to S-15): none where nobody asks for one, ``none()`` where one is required and missing."""
    if scope is not None:
        return EffectiveAssignmentScope.of(scope, max_depth)
    return EffectiveAssignmentScope.none() if required else None
