"""Tables of runs as the chat knows them: steps, run record, activity."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, Float, ForeignKey, Text, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from chat_gateway.models import Base


class RunRow(Base):
    """A run of a conversation.

    Attributes:
        position: its place among the runs of the conversation, from 1.
        message_id: the user message it answers.
        last_sequence: newest step that is projected.
        closed_sequence: newest step that belongs to a closed segment.
        readable: the runtime still shows it to the owner (R-080).
        abandoned: the editor left its card or question undecided (R-006).
        given: the decision the chat passed on, until its segment closes.
    """

    __tablename__ = "chat_run"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    conversation_id: Mapped[UUID] = mapped_column(ForeignKey("conversation.id", ondelete="CASCADE"))
    position: Mapped[int]
    message_id: Mapped[UUID | None]
    user_uid: Mapped[int]
    status: Mapped[str] = mapped_column(Text)
    last_sequence: Mapped[int] = mapped_column(default=0)
    closed_sequence: Mapped[int] = mapped_column(default=0)
    readable: Mapped[bool] = mapped_column(default=True)
    abandoned: Mapped[bool] = mapped_column(default=False)
    given: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
    settled_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class RunStepRow(Base):
    """A projected step, without arguments, results and artifacts (R-009)."""

    __tablename__ = "run_step"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("chat_run.id", ondelete="CASCADE"), primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True)
    segment: Mapped[int]
    round: Mapped[int]
    kind: Mapped[str] = mapped_column(Text)
    call_id: Mapped[str | None] = mapped_column(Text)
    duration_ms: Mapped[float] = mapped_column(Float)
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    payload: Mapped[dict[str, Any]] = mapped_column(JSONB)


class RunRecordRow(Base):
    """An entry of the run record; one per run and segment (R-001)."""

    __tablename__ = "run_record"

    conversation_id: Mapped[UUID] = mapped_column(ForeignKey("conversation.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[UUID | None]
    segment: Mapped[int | None]
    entry: Mapped[dict[str, Any]] = mapped_column(JSONB)


class ActivityRow(Base):
    """A line of the activity list, kept in the form it was written in (R-046)."""

    __tablename__ = "activity"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("chat_run.id", ondelete="CASCADE"), primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True)
    conversation_id: Mapped[UUID]
    entry: Mapped[dict[str, Any]] = mapped_column(JSONB)
