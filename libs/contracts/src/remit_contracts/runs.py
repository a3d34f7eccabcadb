"""Runs: start, status, the pending turn and its decision."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from remit_contracts.actor import ActorRequest
from remit_contracts.base import Contract, RequestContract
from remit_contracts.calls import RehearsedCall
from remit_contracts.records import RecordReference
from remit_contracts.steps import Step


class RunStatus(StrEnum):
    """Statuses of a run (T-21)."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    WAITING_FOR_INPUT = "waiting_for_input"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Nothing follows."""
        return self in {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}

    @property
    def waiting(self) -> bool:
        """A person has to act."""
        return self in {RunStatus.WAITING_FOR_APPROVAL, RunStatus.WAITING_FOR_INPUT}


class TerminationReason(StrEnum):
    """Why a run ended as it did."""

    COMPLETED = "completed"
    MAX_ITERATIONS = "max_iterations"
    BUDGET_EXHAUSTED = "budget_exhausted"
    CONTEXT_TRUNCATED = "context_truncated"
    RETRIES_EXHAUSTED = "retries_exhausted"
    PROVIDER_FAILED = "provider_failed"
    MODEL_NOT_CONFIGURED = "model_not_configured"
    STEP_NOT_STORED = "step_not_stored"
    STATE_UNREADABLE = "state_unreadable"
    INTERNAL_ERROR = "internal_error"
    CANCELLED = "cancelled"


class ChatMessage(RequestContract):
    """One message of the transcript a run starts from."""

    role: Literal["user", "assistant", "system"]
    content: Annotated[str, Field(max_length=200_000)]


class RunStart(RequestContract):
    """Body of ``POST /v1/runs``. The scope of the assignment rides on the actor, nowhere else (S-11)."""

    actor: Annotated[ActorRequest, Field(strict=False)]
    configuration: Annotated[str, Field(min_length=1, max_length=100)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000)]
    conversation_id: Annotated[UUID | None, Field(strict=False)] = None
    tools: list[str] | None = None


class RefusedByRule(Contract):
    """A rule refuses this call (P-03): the card shows it as one that will not be carried out."""

    rule: str
    code: str
    explanation: str


class AffectedRecord(Contract):
    """The record and the fields a pending call would write."""

    table: str
    uid: int | None = None
    fields: tuple[str, ...] = ()


class FieldPreview(Contract):
    """One field of a pending call, before and after, as texts of the preview."""

    field: str
    current: str | None = None
    proposed: str | None = None


class PendingCallView(Contract):
    """One call of a card (P-01, T-30).

    Attributes:
        call_id: the model's call id; the key of a decision.
        workspace_id: the run writes into it, 0 = live.
        workspace_title: withheld (none) from a viewer who may not work there.
        language: target language, only from a tool that takes one; none is not the default language.
        preview_lines: prose; for a refused call the rule's explanation.
        rehearsal: what the call would change, with what comes along and what would be refused.
    """

    call_id: str
    tool: str
    arguments: dict[str, Any] = {}
    preview_lines: tuple[str, ...] = ()
    preview_failed: bool = False
    preview_stale: bool = False
    structured: tuple[FieldPreview, ...] = ()
    affected: AffectedRecord | None = None
    workspace_id: int = 0
    workspace_title: str | None = None
    language: int | None = None
    refused_by_rule: RefusedByRule | None = None
    rehearsal: RehearsedCall | None = None
    would_write_live: bool = False
    requires_draft_workspace: bool = False
    tool_still_registered: bool = True
    write: bool = True


class PendingQuestion(Contract):
    """A question to the person: one answer of the listed options."""

    call_id: str
    question: str
    options: tuple[str, ...]


class PendingTurn(Contract):
    """The one card of a waiting run: every call of the turn, bound by its digest (T-30, T-31)."""

    turn_digest: str
    kind: Literal["approval", "input"]
    calls: tuple[PendingCallView, ...] = ()
    question: PendingQuestion | None = None
    approve_blocked: str = ""
    approve_blocked_reasons: tuple[str, ...] = ()
    second_person: bool = False
    scope_summary: dict[str, Any] | None = None


class Usage(Contract):
    """Tokens and rounds used so far, over all segments."""

    rounds: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class RunView(Contract):
    """A run as its reader sees it."""

    id: UUID
    status: RunStatus
    configuration: str
    conversation_id: UUID | None = None
    owner_uid: int
    segment: int = 0
    last_sequence: int = 0
    outcome: str | None = None
    termination_reason: TerminationReason | None = None
    truncated: bool = False
    retryable: bool = False
    final_content: str | None = None
    error_code: str | None = None
    usage: Usage = Usage()
    created_at: datetime
    settled_at: datetime | None = None
    pending: PendingTurn | None = None


class Decision(StrEnum):
    """What a person says to one call of a card."""

    APPROVE = "approve"
    DECLINE = "decline"


class DecisionRequest(RequestContract):
    """A decision, bound to the turn's digest: every pending call once, or the short form for all (T-33)."""

    turn_digest: str
    decisions: dict[str, Annotated[Decision, Field(strict=False)]] | None = None
    decision: Annotated[Decision | None, Field(strict=False)] = None
    reason: Literal["variant", "skip"] | None = None


class RunDecisionRequest(DecisionRequest):
    """A decision as the runtime takes it; who decides is the assertion's subject."""


class AnswerRequest(RequestContract):
    """An answer to a question."""

    turn_digest: str
    answer: Annotated[str, Field(max_length=1000)]


class StepPage(Contract):
    """Events of a run after a sequence; ``last_sequence`` is the run's newest, so a reader sees what it lacks."""

    run_id: UUID
    status: RunStatus
    last_sequence: int
    steps: tuple[Step, ...]


class RunEventsQuery(RequestContract):
    """Body of ``POST /v1/runs:events``: several runs at once."""

    runs: Annotated[list[Annotated[UUID, Field(strict=False)]], Field(min_length=1, max_length=200)]
    kinds: list[str] | None = None
    after: dict[str, int] = {}


class RunEventsAnswer(Contract):
    """Readable runs with their steps; runs that are gone or not readable are only counted (indistinguishable, T-20)."""

    pages: tuple[StepPage, ...]
    unreadable: int = 0


class WrittenRecord(Contract):
    """A record a tool named, with what it said about its write."""

    record: RecordReference
    completeness: str
