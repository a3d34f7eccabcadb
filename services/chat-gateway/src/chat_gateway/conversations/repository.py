"""Rows of conversations and messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from chat_gateway.conversations.errors import ConversationNotFoundError
from chat_gateway.conversations.models import ConversationRow, MessageRow, RunStartRow


async def owned(session: AsyncSession, conversation_id: UUID, owner_uid: int, *, lock: bool = False) -> ConversationRow:
    """The owner's conversation.

    Raises:
        ConversationNotFoundError: not there, or somebody else's.
    """
    statement = select(ConversationRow).where(
        ConversationRow.id == conversation_id, ConversationRow.owner_uid == owner_uid
    )
    found = (await session.scalars(statement.with_for_update() if lock else statement)).one_or_none()
    if found is None:
        raise ConversationNotFoundError
    return found


async def conversations(
    session: AsyncSession, owner_uid: int, before: tuple[datetime, UUID] | None, limit: int
) -> list[ConversationRow]:
    """Conversations of a user, newest activity first."""
    statement = select(ConversationRow).where(ConversationRow.owner_uid == owner_uid)
    if before is not None:
        statement = statement.where(tuple_(ConversationRow.updated_at, ConversationRow.id) < before)
    ordered = statement.order_by(ConversationRow.updated_at.desc(), ConversationRow.id.desc()).limit(limit)
    return list(await session.scalars(ordered))


async def messages_after(
    session: AsyncSession, conversation_id: UUID, after: int, limit: int | None = None
) -> list[MessageRow]:
    """Messages with a larger sequence, oldest first."""
    statement = (
        select(MessageRow)
        .where(MessageRow.conversation_id == conversation_id, MessageRow.sequence > after)
        .order_by(MessageRow.sequence)
    )
    return list(await session.scalars(statement if limit is None else statement.limit(limit)))


async def newest_messages(session: AsyncSession, conversation_id: UUID, limit: int) -> list[MessageRow]:
    """The newest messages, oldest first."""
    found = await session.scalars(
        select(MessageRow)
        .where(MessageRow.conversation_id == conversation_id)
        .order_by(MessageRow.sequence.desc())
        .limit(limit)
    )
    return list(found)[::-1]


async def remove(session: AsyncSession, conversation: ConversationRow) -> None:
    """Remove a conversation with everything that belongs to it."""
    await session.execute(delete(ConversationRow).where(ConversationRow.id == conversation.id))


async def due_starts(session: AsyncSession, limit: int) -> Sequence[UUID]:
    """Starts that wait for another attempt, oldest first."""
    found = await session.scalars(
        select(RunStartRow.message_id)
        .where(RunStartRow.state == "pending", RunStartRow.next_attempt <= func.clock_timestamp())
        .order_by(RunStartRow.created_at)
        .limit(limit)
    )
    return list(found)
