"""The poll: from the gateway's own rows alone, no event of a run is read for it (R-110, R-111)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import select

from chat_gateway.access.current_user import CurrentUser
from chat_gateway.conversations import repository
from chat_gateway.conversations.schemas import ConversationMessages
from chat_gateway.conversations.service import conversation_view, message_view
from chat_gateway.segments.models import RunRow
from chat_gateway.segments.repository import activity

if TYPE_CHECKING:
    from chat_gateway.services import Services


async def read_messages(
    services: Services, user: CurrentUser, conversation_id: UUID, after: int, limit: int
) -> ConversationMessages:
    """Messages after a sequence; activity of the runs that answer them, and of the present one.

    Raises:
        ConversationNotFoundError: not the user's.
    """
    async with services.database.read() as session:
        conversation = await repository.owned(session, conversation_id, user.uid)
        rows = await repository.messages_after(session, conversation_id, after, limit + 1)
        shown = rows[:limit]
        runs = {row.run_id for row in shown if row.run_id is not None}
        if conversation.current_run is not None:
            runs.add(conversation.current_run)
        known = (
            list(await session.scalars(select(RunRow.id).where(RunRow.id.in_(runs)).order_by(RunRow.position)))
            if runs
            else []
        )
        lines = await activity(session, conversation_id, known)
    card = await services.approvals.card(user, conversation)
    return ConversationMessages(
        conversation=conversation_view(conversation),
        messages=tuple(message_view(row) for row in shown),
        activity=tuple(lines),
        pending_approval=card,
        changes_available=conversation.changes_available,
        changes_revision=conversation.changes_revision,
        next_cursor=str(shown[-1].sequence) if len(rows) > limit else None,
        error_code=conversation.error_code,
    )
