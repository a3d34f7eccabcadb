"""Tables of conversations, their messages and the starts of their runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, ForeignKey, Text, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from chat_gateway.models import Base

IDLE = "idle"
STARTING = "starting"
RUNNING = "running"
BUSY: frozenset[str] = frozenset({STARTING, RUNNING})


class ConversationRow(Base):
    """A conversation.

    Attributes:
        status: ``idle``, ``starting``, ``running``, or the waiting or final status of its last run.
        pending: the waiting turn as the runtime gave it, none when nobody has to act.
        last_message, last_event, last_entry, last_run: counters, raised under the row's lock (CALLS 5).
        changes_available: of the run record, kept with it (R-110).
        changes_revision: raised with every change of the list (A-16).
    """

    __tablename__ = "conversation"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    owner_uid: Mapped[int]
    title: Mapped[str] = mapped_column(Text)
    configuration: Mapped[str] = mapped_column(Text)
    workspace_id: Mapped[int]
    assignment_scope: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    view_context: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    status: Mapped[str] = mapped_column(Text, default=IDLE)
    error_code: Mapped[str | None] = mapped_column(Text)
    current_run: Mapped[UUID | None]
    pending: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    last_message: Mapped[int] = mapped_column(default=0)
    last_event: Mapped[int] = mapped_column(default=0)
    last_entry: Mapped[int] = mapped_column(default=0)
    last_run: Mapped[int] = mapped_column(default=0)
    changes_available: Mapped[bool] = mapped_column(default=False)
    changes_revision: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())


class MessageRow(Base):
    """A message; ``sequence`` is gapless per conversation."""

    __tablename__ = "message"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    conversation_id: Mapped[UUID] = mapped_column(ForeignKey("conversation.id", ondelete="CASCADE"))
    sequence: Mapped[int]
    role: Mapped[str] = mapped_column(Text)
    content: Mapped[str] = mapped_column(Text)
    run_id: Mapped[UUID | None]
    segment: Mapped[int | None]
    nothing_saved: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.clock_timestamp())


class RunStartRow(Base):
    """The start of a run, written with its message, so that it can be sent again with the same key and body.

    Attributes:
        message_id: the message it answers; its text form is the idempotency key.
        body: the request, removed once it is settled.
        state: ``pending``, ``started`` or ``failed``.
    """

    __tablename__ = "run_start"

    message_id: Mapped[UUID] = mapped_column(ForeignKey("message.id", ondelete="CASCADE"), primary_key=True)
    conversation_id: Mapped[UUID] = mapped_column(ForeignKey("conversation.id", ondelete="CASCADE"))
    user_uid: Mapped[int]
    body: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    state: Mapped[str] = mapped_column(Text, default="pending")
    attempts: Mapped[int] = mapped_column(default=0)
    next_attempt: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
