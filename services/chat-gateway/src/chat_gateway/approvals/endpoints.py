"""Routes that decide on a card or answer a question."""

from __future__ import annotations

from uuid import UUID

from remit_contracts.runs import AnswerRequest, DecisionRequest
from service_kit.problems import problem_responses
from service_kit.routing import Router

from chat_gateway.access.current_user import CurrentUserDependency
from chat_gateway.approvals.errors import (
    ApproveBlockedError,
    DecisionIncompleteError,
    DecisionUnknownError,
    NotAQuestionError,
    NothingPendingError,
    TurnStaleError,
)
from chat_gateway.approvals.schemas import DecisionAccepted
from chat_gateway.conversations.errors import ConversationNotFoundError
from chat_gateway.deps import READER_PROBLEMS, ApprovalServiceDependency

router = Router(prefix="/v1/conversations", tags=["approvals"])
_PROBLEMS = (
    *READER_PROBLEMS,
    ConversationNotFoundError,
    TurnStaleError,
    NothingPendingError,
    NotAQuestionError,
    DecisionUnknownError,
)


@router.post(
    "/{conversation_id}/decision",
    status_code=202,
    summary="Approve or decline the pending card",
    responses=problem_responses(*_PROBLEMS, DecisionIncompleteError, ApproveBlockedError, body=True),
)
async def decide(
    conversation_id: UUID, body: DecisionRequest, user: CurrentUserDependency, approvals: ApprovalServiceDependency
) -> DecisionAccepted:
    """Decide every pending call once, or all of them with ``decision``; bound to the card by ``turnDigest``.

    A card that changed answers 409 ``turn_stale`` with the fresh one as ``pendingApproval``; nothing was carried out.
    503 ``decision_unknown``: it was sent and not answered in time. The conversation will show the card or what came of
    it; sending it again is safe.
    """
    return await approvals.decide(user, conversation_id, body)


@router.post(
    "/{conversation_id}/answer",
    status_code=202,
    summary="Answer the pending question",
    responses=problem_responses(*_PROBLEMS, body=True),
)
async def answer(
    conversation_id: UUID, body: AnswerRequest, user: CurrentUserDependency, approvals: ApprovalServiceDependency
) -> DecisionAccepted:
    """Answer with one of the question's options."""
    return await approvals.answer(user, conversation_id, body)
