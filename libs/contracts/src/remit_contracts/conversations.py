"""Conversations: the chat API's shapes (requirements R, section 3.11)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from remit_contracts.base import Contract, RequestContract, StoredContract
from remit_contracts.changes import ChangeAction
from remit_contracts.runs import PendingCallView, PendingQuestion
from remit_contracts.scope import AssignmentScope
from remit_contracts.visibility import RecordLinks

MAX_RUN_RECORD_ENTRIES = 200


class ConversationCreate(RequestContract):
    """Body of ``POST /v1/conversations``. The scope is put on the actor of every run (R-065)."""

    configuration: Annotated[str, Field(min_length=1, max_length=100)] = "default"
    title: Annotated[str, Field(max_length=200)] | None = None
    workspace_id: Annotated[int, Field(ge=0)] = 0
    assignment_scope: Annotated[AssignmentScope | None, Field(strict=False)] = None


class ViewContext(RequestContract):
    """What the editor looks at when a message is sent; page 0 = none selected (R-060)."""

    page_id: Annotated[int, Field(ge=0)] = 0
    module: Annotated[str, Field(max_length=100)] | None = None
    language_id: int | None = None


class MessageCreate(RequestContract):
    """Body of ``POST /v1/conversations/{id}/messages``."""

    content: Annotated[str, Field(min_length=1, max_length=20_000)]
    view_context: ViewContext | None = None


class MessageView(Contract):
    """One message. ``sequence`` is gapless per conversation and pages the list."""

    id: UUID
    sequence: int
    role: Literal["user", "assistant"]
    content: str
    created_at: datetime
    run: UUID | None = None
    nothing_saved: bool = False


class ActivityEntry(Contract):
    """One line of what a run did: a tool and how it went, in codes."""

    sequence: int
    run: UUID
    call_id: str | None = None
    tool: str | None = None
    code: str
    at: datetime


class PendingTurnCall(PendingCallView):
    """A call of the card with the chat's own words."""

    action_label: str = ""
    workspace_sentence: str = ""
    rehearsal_lines: tuple[str, ...] = ()


class PendingApproval(Contract):
    """The card as the chat shows it (R-120 to R-130)."""

    run: UUID
    turn_digest: str
    kind: Literal["approval", "input"]
    calls: tuple[PendingTurnCall, ...]
    question: PendingQuestion | None = None
    approve_blocked: str = ""
    approve_blocked_reasons: tuple[str, ...] = ()
    may_decide: bool = True
    carried_out: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    scope_summary: str | None = None


class ConversationView(Contract):
    """A conversation of the reader."""

    id: UUID
    title: str
    configuration: str
    status: str
    workspace_id: int
    assignment_scope: AssignmentScope | None = None
    created_at: datetime
    updated_at: datetime


class MessagesView(Contract):
    """Answer of ``GET /v1/conversations/{id}/messages``: no event is read for it (R-110, R-111)."""

    conversation: ConversationView
    messages: tuple[MessageView, ...]
    activity: tuple[ActivityEntry, ...] = ()
    pending_approval: PendingApproval | None = None
    changes_available: bool = False
    changes_revision: int = 0
    next_cursor: str | None = None


class RunRecordTool(StoredContract):
    """How often a tool ran and failed in a segment."""

    name: str
    calls: int
    failed: int = 0


class RunRecordWrite(StoredContract):
    """A record a tool named in a segment."""

    record: str
    completeness: str


class RunRecordEntry(StoredContract):
    """What one segment of a run did (R-002), additive JSON."""

    after: str | None = None
    outcomes_before: int = 0
    outcome: str = "unknown"
    run: UUID | None = None
    segment: int | None = None
    tools: tuple[RunRecordTool, ...] = ()
    writes: tuple[RunRecordWrite, ...] = ()
    waiting: tuple[str, ...] = ()
    decision: dict[str, Any] | None = None
    undecided: str | None = None
    changed: int = 0
    refused: int = 0


class ChangeRowRestrictions(Contract):
    """Time and group restrictions the row itself carries."""

    start: int | None = None
    end: int | None = None
    groups: str | None = None


class ChangeRowTitle(Contract):
    """An id with its title; the title is none when withheld."""

    id: int
    title: str | None = None


class ChangeRowCall(Contract):
    """A call that changed the record."""

    run: UUID
    call_id: str | None = None
    tool: str | None = None
    at: datetime | None = None


class ChangeRow(Contract):
    """One changed record of a conversation, as the viewer may see it."""

    key: str
    table: str
    table_label: str
    uid: int
    title: str
    live_uid: int | None = None
    page_id: int | None = None
    page_title: str | None = None
    action: ChangeAction | None = None
    created_here: bool = False
    workspace: ChangeRowTitle | None = None
    language: ChangeRowTitle | None = None
    hidden: bool | None = None
    restrictions: ChangeRowRestrictions | None = None
    target: bool = False
    failed: bool = False
    partial: bool = False
    relation: bool = False
    legacy: bool = False
    deleted: bool = False
    runs: tuple[UUID, ...] = ()
    calls: tuple[ChangeRowCall, ...] = ()
    links: RecordLinks = RecordLinks()


class ChangeNote(Contract):
    """A note under the list: a code, a number where it counts something, and the sentence in the reader's language."""

    code: str
    count: int | None = None
    text: str = ""


class ChangeCounts(Contract):
    """Numbers beside the list, counted after the filter."""

    visible: int = 0
    omitted: int = 0
    withheld: int = 0
    unreadable_runs: int = 0
    legacy_runs: int = 0
    not_captured_calls: int = 0
    refused_writes: int = 0
    undone_calls: int = 0


class RefusedRow(Contract):
    """A refused write whose record the viewer may see (R-098)."""

    operation: str
    table: str
    uid: int | None = None
    title: str | None = None
    reason: str
    undone: bool = False


class ChangeList(Contract):
    """Answer of ``GET /v1/conversations/{id}/changes``."""

    conversation_id: UUID
    changes_revision: int
    running: bool = False
    rows: tuple[ChangeRow, ...] = ()
    refused: tuple[RefusedRow, ...] = ()
    counts: ChangeCounts = ChangeCounts()
    notes: tuple[ChangeNote, ...] = ()
    next_cursor: str | None = None


class ServerEvent(Contract):
    """A server-sent event: something changed; ids come from a sequence under the conversation's row lock (CALLS 5)."""

    id: int
    type: str
    data: dict[str, Any] = {}
