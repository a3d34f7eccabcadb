"""Calls: how a tool writes through the content-store (CALLS 1 to 4)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from remit_contracts.actor import ActorContext
from remit_contracts.base import Contract, RequestContract
from remit_contracts.changes import ObservedChangeSet
from remit_contracts.records import TableName, Uid, WriteTarget
from remit_contracts.scope import EffectiveAssignmentScope

MAX_OPERATIONS = 100
# What a bigint of the database holds.
MAX_EPOCH = 2**63 - 1


class ToolEffect(StrEnum):
    """What a tool does to the world."""

    READ = "read"
    WRITE = "write"
    REMOTE = "remote"
    UNDECLARED = "undeclared"


class Datamap(RequestContract):
    """Records to create and update: ``{table: {uid or "NEW…": {field: value}}}``, raw JSON until the DataHandler (S-42)."""

    op: Literal["datamap"] = "datamap"
    datamap: dict[str, Any]


class Cmdmap(RequestContract):
    """Commands: ``{table: {uid: {command: value}}}``, raw JSON until the DataHandler."""

    op: Literal["cmdmap"] = "cmdmap"
    cmdmap: dict[str, Any]


class Read(RequestContract):
    """Rows as the call sees them now, its own writes included. ``uids`` may hold placeholders of earlier operations."""

    op: Literal["read"] = "read"
    table: TableName
    uids: Annotated[list[int | str], Field(min_length=1, max_length=200)]
    fields: list[str] | None = None


class Expect(RequestContract):
    """Lock the row and require the hash of its columns (sorting left out); unmet, the call is rolled back."""

    op: Literal["expect"] = "expect"
    table: TableName
    uid: Uid
    hash: str


class FlushCache(RequestContract):
    """Flush a cache group (after the commit) or a tag (in place), S-59."""

    op: Literal["flushCache"] = "flushCache"
    group: Literal["pages", "all", "system"] | None = None
    tags: list[str] = []


Operation = Annotated[Datamap | Cmdmap | Read | Expect | FlushCache, Field(discriminator="op")]


class ShownChange(Contract):
    """One line of what a card showed: compared as a multiset before the commit (CALLS 4).

    Attributes:
        record: the uid as text, or the placeholder path of a new record (uids of new rows are not known before).
        pid: page uid as text, or a placeholder path.
    """

    table: str
    action: str
    record: str
    pid: str
    language: int | None = None
    workspace_id: int = 0


class CallContext(RequestContract):
    """What both a call and a rehearsal name.

    Attributes:
        run_id: the run the call belongs to.
        lease_epoch: of the worker that sends it; an older one than the store has seen is fenced.
        actor: whose rights hold; its user is the assertion's subject.
        scope: effective scope of this call, none where nobody asks for one.
        scope_required: the configuration requires one.
    """

    run_id: Annotated[UUID, Field(strict=False)]
    lease_epoch: Annotated[int, Field(ge=1, le=MAX_EPOCH)]
    actor: Annotated[ActorContext, Field(strict=False)]
    scope: Annotated[EffectiveAssignmentScope | None, Field(strict=False)] = None
    scope_required: bool = False


class ApplyRequest(CallContext):
    """Body of ``POST /v1/calls/{callId}/apply``."""

    tool: str
    effect: Annotated[ToolEffect, Field(strict=False)] = ToolEffect.WRITE
    write_target: Annotated[WriteTarget | None, Field(strict=False)] = None
    operations: Annotated[list[Operation], Field(min_length=1, max_length=MAX_OPERATIONS)]
    rehearsal_id: Annotated[UUID | None, Field(strict=False)] = None
    shown: Annotated[list[ShownChange] | None, Field(strict=False)] = None


class OpenRequest(CallContext):
    """Body of ``POST /v1/calls/{callId}/open``: an interactive call, operations follow."""

    tool: str
    effect: Annotated[ToolEffect, Field(strict=False)] = ToolEffect.WRITE
    write_target: Annotated[WriteTarget | None, Field(strict=False)] = None
    rehearsal_id: Annotated[UUID | None, Field(strict=False)] = None
    shown: Annotated[list[ShownChange] | None, Field(strict=False)] = None


class OperationsRequest(RequestContract):
    """Body of ``POST /v1/calls/{callId}/operations``."""

    operations: Annotated[list[Operation], Field(min_length=1, max_length=MAX_OPERATIONS)]


class CallOutcome(StrEnum):
    """How a call ended. Only ``resolve`` may say ``rolled_back`` for a call whose answer was lost."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled_back"
    OPEN = "open"
    UNKNOWN = "unknown"


class RollbackReason(StrEnum):
    """What undid a call (S-66)."""

    VIOLATION = "violation"
    NOT_JUDGEABLE = "not_judgeable"
    EXPECT = "expect"
    MORE_THAN_SHOWN = "more_than_shown"
    LOCKED = "locked"
    CONFLICT = "conflict"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    COMMIT_REFUSED = "commit_refused"
    ABANDONED = "abandoned"


class EntryError(Contract):
    """One entry or command that was not carried out, with a stable code and the reader-independent facts."""

    operation: str
    table: str
    record: str
    code: str
    message: str = ""


class OperationResult(Contract):
    """What one operation did.

    Attributes:
        placeholders: placeholder -> uid of the records it created.
        copies: table -> source uid -> uid of the copy (also of a translation).
        rows: of a ``read``; ``hash`` of each row stands in ``hashes`` for a later ``expect``.
    """

    op: str
    placeholders: dict[str, int] = {}
    copies: dict[str, dict[str, int]] = {}
    errors: tuple[EntryError, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()
    hashes: dict[str, str] = {}


class CallResult(Contract):
    """The answer of ``apply`` and ``commit``, and what the outcome row keeps.

    Attributes:
        outcome: ``committed`` or ``rolled_back``.
        reason: why it was rolled back.
        changes: what changed, what was refused, how far the list reaches. Empty list after a rollback (S-74).
        warnings: codes, e.g. ``flush_failed`` (S-59), ``after_commit_failed``.
        exceeded: what a rehearsed call would have changed beyond what its card showed.
    """

    call_id: UUID
    outcome: CallOutcome
    reason: RollbackReason | None = None
    operations: tuple[OperationResult, ...] = ()
    changes: ObservedChangeSet = ObservedChangeSet()
    write_target: WriteTarget | None = None
    hook_failed_after_write: bool = False
    warnings: tuple[str, ...] = ()
    exceeded: tuple[ShownChange, ...] = ()
    judged_rows: int = 0


class CallResolution(Contract):
    """Answer of ``resolve`` and of ``GET /v1/calls/{callId}``; ``result`` only when committed."""

    call_id: UUID
    outcome: CallOutcome
    result: CallResult | None = None


class OpenedCall(Contract):
    """An interactive call: where the later requests go, and how long it lives.

    Attributes:
        address: base URL of the process that holds the transaction.
        token: for the next request (header ``Call-Token``), rotated per answer.
        sequence: of the next request (header ``Call-Seq``).
    """

    call_id: UUID
    address: str
    token: str
    sequence: int
    idle_seconds: float
    expires_at: datetime


class OperationsAnswer(Contract):
    """Answer of ``operations``: results, and token and sequence of the next request."""

    operations: tuple[OperationResult, ...]
    token: str
    sequence: int
    expires_at: datetime


class RehearsedCallRequest(RequestContract):
    """One call of a turn as it would be applied."""

    key: str
    tool: str
    effect: Annotated[ToolEffect, Field(strict=False)] = ToolEffect.WRITE
    write_target: Annotated[WriteTarget | None, Field(strict=False)] = None
    operations: Annotated[list[Operation], Field(min_length=1, max_length=MAX_OPERATIONS)]


class RehearsalRequest(CallContext):
    """Body of ``POST /v1/rehearsals/{rehearsalId}``: the calls of a turn in order; always rolled back."""

    calls: Annotated[list[RehearsedCallRequest], Field(min_length=1, max_length=50)]


class RehearsedCall(Contract):
    """What one call would do.

    Attributes:
        key: of the request.
        outcome: ``committed`` (it would), ``rolled_back`` (it would be), ``unknown`` (could not be rehearsed).
        problem: code why it could not be rehearsed: ``locked``, ``timeout``, ``hook_failed``, …
        shown: what to hand back with the call when it is carried out.
        changes: the same as the list of a call, with what comes along; ``refused`` = what would be refused.
    """

    key: str
    outcome: CallOutcome
    reason: RollbackReason | None = None
    problem: str | None = None
    shown: tuple[ShownChange, ...] = ()
    changes: ObservedChangeSet = ObservedChangeSet()
    errors: tuple[EntryError, ...] = ()
    operations: tuple[OperationResult, ...] = ()


class RehearsalResult(Contract):
    """Answer of a rehearsal, one entry per call in order."""

    rehearsal_id: UUID
    calls: tuple[RehearsedCall, ...]
