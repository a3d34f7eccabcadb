"""Codes of what a DataHandler refuses, and the exceptions that leave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from content_store.records.errors import CallMustEnd, StatementRefused, TransactionLost, ValueNotStorable

__all__ = [
    "CallMustEnd",
    "ErrorCode",
    "Refusal",
    "RunTooDeep",
    "StatementRefused",
    "TransactionLost",
    "UndoNeeded",
    "ValueNotStorable",
]


class ErrorCode(StrEnum):
    """Stable codes of entries and commands that were not carried out."""

    INVALID_DATAMAP = "invalid_datamap"
    INVALID_CMDMAP = "invalid_cmdmap"
    INVALID_RECORD_ID = "invalid_record_id"
    INVALID_ROW = "invalid_row"
    INVALID_VALUE = "invalid_value"
    UNKNOWN_TABLE = "unknown_table"
    UNKNOWN_FIELD = "unknown_field"
    UNKNOWN_COMMAND = "unknown_command"
    UNKNOWN_PLACEHOLDER = "unknown_placeholder"
    RECORD_NOT_FOUND = "record_not_found"
    PAGE_NOT_FOUND = "page_not_found"
    ANCHOR_NOT_FOUND = "anchor_not_found"
    TABLE_NOT_SORTABLE = "table_not_sortable"
    MISSING_PAGE = "missing_page"
    MOVE_INTO_BRANCH = "move_into_branch"
    TABLE_WITHOUT_LANGUAGE = "table_without_language"
    UNKNOWN_LANGUAGE = "unknown_language"
    NOT_DEFAULT_LANGUAGE = "not_default_language"
    TRANSLATION_EXISTS = "translation_exists"
    FIELD_NOT_INLINE = "field_not_inline"
    FREE_MODE = "free_mode"
    NOT_DELETED = "not_deleted"
    PAGE_DELETED = "page_deleted"
    WORKSPACES_UNAVAILABLE = "workspaces_unavailable"
    DATABASE_REFUSED = "database_refused"
    VALUE_NOT_STORABLE = "value_not_storable"
    VETOED = "vetoed"
    UID_TAKEN = "uid_taken"
    FILE_DENIED = "file_denied"
    UID_NOT_ALLOWED = "uid_not_allowed"
    FIELD_NOT_ALLOWED = "field_not_allowed"
    FOLLOWS_ORIGINAL = "follows_original"


@dataclass
class Refusal(Exception):
    """An entry or command that is not carried out; caught where the entry began, logged and reported.

    Attributes:
        code: stable code, an :class:`ErrorCode` or the code of a denial.
        message: with ``{name}`` marks.
        data: fills the marks.
        denied: a right was missing, not a mistake in the request.
        logged: a nested instance has logged it already.
    """

    code: str
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)
    denied: bool = False
    logged: bool = False

    def __str__(self) -> str:
        text = self.message
        for name, value in self.data.items():
            text = text.replace("{" + name + "}", str(value))
        return text


class UndoNeeded(Exception):
    """An entry was refused after it had written something, and there is no savepoint that takes it back alone.

    Attributes:
        code: of the refusal.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class RunTooDeep(Exception):
    """Nested instances went deeper than the limit (a hook that answers its own writes)."""

    code = "run_too_deep"
