"""Events on Kafka: topics, types and payloads (DESIGN 9, T-70)."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from remit_contracts.base import StoredContract
from remit_contracts.changes import ChangeAction
from remit_contracts.steps import Step

RUN_STEPS_TOPIC = "remit.run-steps.v1"
RECORDS_TOPIC = "remit.records.v1"
LIVE_TOPIC = "remit.live.v1"
RUN_STEP_TYPE_PREFIX = "io.remit.run-step."
RECORD_CHANGED_TYPE = "io.remit.record.changed.v1"


def dead_letter_topic(topic: str) -> str:
    """Where messages go that cannot be handled."""
    return f"{topic}.dlq"


def run_step_type(kind: str) -> str:
    """CloudEvents type of a step of this kind."""
    return f"{RUN_STEP_TYPE_PREFIX}{kind}.v1"


class RunStepEvent(StoredContract):
    """A stored step, as published. Stream = the run, key = the conversation, else the run.

    Attributes:
        run_status: status of the run when the step was stored.
        user_uid: owner of the run.
    """

    run_id: UUID
    conversation_id: UUID | None = None
    user_uid: int
    run_status: str
    step: Step


class EventActor(StoredContract):
    """Who changed a record: ``user``, ``service`` or ``unknown`` (a write nobody took from the capture)."""

    kind: str
    user_uid: int | None = None


class RecordChanged(StoredContract):
    """A committed change of a record, by whom ever. Stream and key = ``table:uid``. Never a title or a value."""

    table: str
    uid: int
    action: ChangeAction
    pid: int | None = None
    language: int | None = None
    workspace_id: int = 0
    live_uid: int | None = None
    relation: bool = False
    actor: EventActor
    run_id: UUID | None = None
    call_id: UUID | None = None
    at: datetime
