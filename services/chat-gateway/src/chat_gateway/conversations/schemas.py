"""Shapes of the conversation routes beyond the shared contracts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from remit_contracts.base import Contract, RequestContract
from remit_contracts.conversations import ConversationView, MessagesView, MessageView

from chat_gateway.approvals.schemas import ApprovalCard


class TitleChange(RequestContract):
    """Body of ``PATCH /v1/conversations/{id}``."""

    title: Annotated[str, Field(min_length=1, max_length=200)]


class ConversationPage(Contract):
    """Conversations of the reader, newest activity first."""

    conversations: tuple[ConversationView, ...]
    next_cursor: str | None = None


class MessageAccepted(Contract):
    """Answer to a message: it is stored, and its turn begins.

    Attributes:
        status: of the conversation now: ``starting`` until the runtime took the run.
        error_code: why the turn could not begin; the message itself is kept.
    """

    message: MessageView
    status: str
    error_code: str | None = None


class ConversationMessages(MessagesView):
    """The poll's answer, with the card in the chat's own words."""

    pending_approval: ApprovalCard | None = None
    error_code: str | None = None
