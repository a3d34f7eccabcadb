"""Bodies and answers of a person's writes."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field
from remit_contracts.base import Contract, RequestContract


class DatamapRequest(RequestContract):
    """Records to create and update, ``{table: {uid or "NEW…": {field: value}}}``: raw until the DataHandler reads it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"datamap": {"tt_content": {"NEW1": {"pid": 12, "header": "Opening hours"}}}}]}
    )

    datamap: dict[str, Any]


class CmdmapRequest(RequestContract):
    """Commands, ``{table: {uid: {command: value}}}``: raw until the DataHandler reads it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"cmdmap": {"tt_content": {"7": {"move": 12}}}}]})

    cmdmap: dict[str, Any]


class RollbackRequest(RequestContract):
    """The entry of the record's history it goes back to: as it was right after that entry."""

    history_uid: int = Field(ge=1, le=2**63 - 1)


class DroppedFieldView(Contract):
    """A submitted field that was not written. ``code``: ``field_not_allowed``, ``unknown_field``, or why it was refused."""

    field: str
    code: str


class EntryView(Contract):
    """What happened to one entry or command.

    Attributes:
        id: uid or placeholder as submitted.
        operation: ``new``, ``update`` or the name of the command.
        status: ``written``, ``unchanged``, ``refused``, ``error`` or ``vetoed``.
        uid: of the record written, the copy or the translation.
        code: stable code where it was not carried out.
        message: for people, English.
        dropped: fields that were not written although the rest was.
    """

    table: str
    id: str
    operation: str
    status: str
    uid: int | None = None
    code: str | None = None
    message: str | None = None
    dropped: list[DroppedFieldView] = []


class WriteView(Contract):
    """The result of one transaction.

    Attributes:
        entries: one per entry and command, in order; an entry that was not carried out changed nothing.
        placeholders: uid by placeholder.
        copies: table -> source uid as text -> uid of copy or translation.
        warnings: codes of what failed after the commit; what was written stays.
    """

    entries: list[EntryView]
    placeholders: dict[str, int] = {}
    copies: dict[str, dict[str, int]] = {}
    warnings: list[str] = []


class RollbackView(WriteView):
    """The result of a rollback.

    ``skippedFields``: fields that changed since and are not as they were then; ``pid`` stands for the place.
    """

    skipped_fields: list[str] = []
