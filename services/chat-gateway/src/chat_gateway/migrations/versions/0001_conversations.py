"""Conversations, messages, runs, run record, activity, stream log, inbox, idempotency keys.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from alembic import op
from service_kit.idempotency import idempotency_ddl
from service_kit.inbox import inbox_ddl
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _moment(name: str, *, nullable: bool = False, default: str | None = "clock_timestamp()") -> sa.Column[datetime]:
    server_default = sa.text(default) if default and not nullable else None
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable, server_default=server_default)


def _of_conversation(*, primary: bool = False) -> sa.Column[UUID]:
    return sa.Column(
        "conversation_id",
        sa.Uuid(),
        sa.ForeignKey("conversation.id", ondelete="CASCADE"),
        primary_key=primary,
        nullable=False,
    )


def _count(name: str, default: str = "0") -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False, server_default=default)


def _flag(name: str, default: str = "false") -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False, server_default=default)


def upgrade() -> None:
    """Make everything."""
    _conversations()
    _runs()
    _stream()
    for ddl in (inbox_ddl(), idempotency_ddl()):
        for statement in filter(str.strip, ddl.split(";")):
            op.execute(statement)


def _conversations() -> None:
    op.create_table(
        "conversation",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("owner_uid", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("configuration", sa.Text(), nullable=False),
        sa.Column("workspace_id", sa.Integer(), nullable=False),
        sa.Column("assignment_scope", JSONB()),
        sa.Column("view_context", JSONB()),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error_code", sa.Text()),
        sa.Column("current_run", sa.Uuid()),
        sa.Column("pending", JSONB()),
        _count("last_message"),
        _count("last_event"),
        _count("last_entry"),
        _count("last_run"),
        _flag("changes_available"),
        _count("changes_revision"),
        _moment("created_at"),
        _moment("updated_at"),
    )
    op.create_index("conversation_owner", "conversation", ["owner_uid", "updated_at", "id"])
    op.create_table(
        "message",
        sa.Column("id", sa.Uuid(), primary_key=True),
        _of_conversation(),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Uuid()),
        sa.Column("segment", sa.Integer()),
        _flag("nothing_saved"),
        _moment("created_at"),
        sa.UniqueConstraint("conversation_id", "sequence"),
    )
    op.create_index(
        "message_answer", "message", ["run_id", "segment"], unique=True, postgresql_where=sa.text("role = 'assistant'")
    )
    op.create_table(
        "run_start",
        sa.Column("message_id", sa.Uuid(), sa.ForeignKey("message.id", ondelete="CASCADE"), primary_key=True),
        _of_conversation(),
        sa.Column("user_uid", sa.Integer(), nullable=False),
        sa.Column("body", JSONB()),
        sa.Column("state", sa.Text(), nullable=False),
        _count("attempts"),
        _moment("next_attempt"),
        _moment("created_at"),
    )
    op.create_index("run_start_due", "run_start", ["next_attempt"], postgresql_where=sa.text("state = 'pending'"))
    op.create_index("run_start_conversation", "run_start", ["conversation_id"])


def _runs() -> None:
    op.create_table(
        "chat_run",
        sa.Column("id", sa.Uuid(), primary_key=True),
        _of_conversation(),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.Uuid()),
        sa.Column("user_uid", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        _count("last_sequence"),
        _count("closed_sequence"),
        _flag("readable", "true"),
        _flag("abandoned"),
        sa.Column("given", JSONB()),
        _moment("created_at"),
        _moment("settled_at", nullable=True),
        sa.UniqueConstraint("conversation_id", "position"),
    )
    op.create_index(
        "chat_run_open", "chat_run", ["created_at"], postgresql_where=sa.text("settled_at IS NULL AND readable")
    )
    op.create_table(
        "run_step",
        sa.Column("run_id", sa.Uuid(), sa.ForeignKey("chat_run.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("sequence", sa.Integer(), primary_key=True),
        sa.Column("segment", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text()),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        _moment("at", default=None),
        sa.Column("payload", JSONB(), nullable=False),
    )
    op.create_table(
        "run_record",
        _of_conversation(primary=True),
        sa.Column("position", sa.Integer(), primary_key=True),
        sa.Column("run_id", sa.Uuid()),
        sa.Column("segment", sa.Integer()),
        sa.Column("entry", JSONB(), nullable=False),
        sa.UniqueConstraint("run_id", "segment"),
    )
    op.create_table(
        "activity",
        sa.Column("run_id", sa.Uuid(), sa.ForeignKey("chat_run.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("sequence", sa.Integer(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("entry", JSONB(), nullable=False),
    )


def _stream() -> None:
    op.create_table(
        "stream_event",
        _of_conversation(primary=True),
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", JSONB(), nullable=False),
        _moment("created_at"),
    )
    op.create_index("stream_event_created", "stream_event", ["created_at"])
