"""The plan of a write call: every fact resolved, used by execution, preview and viewer check alike (T-61)."""

from __future__ import annotations

from typing import Any

from remit_contracts.base import Contract
from remit_contracts.calls import Operation
from remit_contracts.records import RecordReference, WriteTarget
from remit_contracts.runs import AffectedRecord, FieldPreview


class ReadBack(Contract):
    """A row to compare after the write: success is claimed only on a match (T-61).

    Attributes:
        operation: index of the ``read`` operation whose rows hold it.
        record: uid as text, or the placeholder of a created record.
        expected: column -> value the plan wrote.
    """

    operation: int
    table: str
    record: str
    expected: dict[str, Any]


class CopyCheck(Contract):
    """The row a command made out of a record, read after the commit and compared like a :class:`ReadBack`."""

    operation: int
    table: str
    source: int
    expected: dict[str, Any]


class Plan(Contract):
    """Everything a write call is going to do, with all facts resolved; used by execution, preview and viewer check.

    Attributes:
        operations: what the store is asked to do, reads and expectations included.
        target: the record the call names; none only for a tool that touches no record.
        lines: the preview in prose, bounded by the loop.
        structured: fields before and after.
        language: only from a tool that takes a target language (P-01).
        success: what the model reads; ``{uid}`` is replaced by the uid of the target.
        touches: records whose rows the call changes, so that later calls of the turn drop their expectations of them.
    """

    operations: tuple[Operation, ...]
    target: WriteTarget | None = None
    lines: tuple[str, ...] = ()
    structured: tuple[FieldPreview, ...] = ()
    affected: AffectedRecord | None = None
    language: int | None = None
    read_back: tuple[ReadBack, ...] = ()
    copy_check: CopyCheck | None = None
    success: str = "Done."
    touches: tuple[RecordReference, ...] = ()
    deletes: bool = False
