"""The stored log of what the chat was told."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from remit_contracts.conversations import ServerEvent
from sqlalchemy import delete, func, select
from sqlalchemy.engine import CursorResult
from sqlalchemy.ext.asyncio import AsyncSession

from chat_gateway.conversations.models import ConversationRow
from chat_gateway.stream.models import StreamEventRow

STATUS = "status"
MESSAGE = "message"
ACTIVITY = "activity"
CARD = "card"
CHANGES = "changes"


def append_event(session: AsyncSession, conversation: ConversationRow, kind: str, data: dict[str, Any]) -> None:
    """Add an event in the caller's transaction; the caller holds the conversation's row lock (CALLS 5)."""
    conversation.last_event += 1
    session.add(StreamEventRow(conversation_id=conversation.id, id=conversation.last_event, type=kind, data=data))


async def events_after(session: AsyncSession, conversation_id: UUID, after: int, limit: int) -> list[ServerEvent]:
    """Events with a larger id, oldest first."""
    found = await session.scalars(
        select(StreamEventRow)
        .where(StreamEventRow.conversation_id == conversation_id, StreamEventRow.id > after)
        .order_by(StreamEventRow.id)
        .limit(limit)
    )
    return [ServerEvent(id=row.id, type=row.type, data=row.data) for row in found]


async def oldest_event(session: AsyncSession, conversation_id: UUID) -> int | None:
    """Id of the oldest event that is still stored."""
    return (
        await session.execute(
            select(func.min(StreamEventRow.id)).where(StreamEventRow.conversation_id == conversation_id)
        )
    ).scalar_one_or_none()


async def purge_events(session: AsyncSession, before: datetime) -> int:
    """Remove events older than a moment; a client that resumes behind them is told to load everything anew."""
    result = await session.execute(delete(StreamEventRow).where(StreamEventRow.created_at < before))
    return result.rowcount if isinstance(result, CursorResult) else 0
