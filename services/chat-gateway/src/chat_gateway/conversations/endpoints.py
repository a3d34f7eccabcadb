"""Routes of conversations and messages."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query, Request, Response
from remit_contracts.conversations import ConversationCreate, ConversationView, MessageCreate
from service_kit.client import RemoteError, RemoteServiceUnavailableError
from service_kit.idempotency import Idempotency, IdempotencyConflictError, IdempotencyKeyHeader
from service_kit.problems import problem_responses
from service_kit.routing import Router

from chat_gateway.access.current_user import CurrentUser, CurrentUserDependency
from chat_gateway.clients.errors import as_problem
from chat_gateway.conversations import repository
from chat_gateway.conversations.cursors import decode_place, encode_place
from chat_gateway.conversations.errors import (
    ConfigurationUnknownError,
    ConversationNotFoundError,
    CursorInvalidError,
    TooManyMessagesError,
    TurnRunningError,
    WorkspaceUnknownError,
)
from chat_gateway.conversations.poll import read_messages
from chat_gateway.conversations.schemas import ConversationMessages, ConversationPage, MessageAccepted, TitleChange
from chat_gateway.conversations.service import conversation_view
from chat_gateway.deps import READER_PROBLEMS, services_of

router = Router(prefix="/v1", tags=["conversations"])
_FOUND = (*READER_PROBLEMS, ConversationNotFoundError)
_idempotency = Idempotency()


def _owner(user: CurrentUser) -> str:
    return f"user:{user.uid}"


@router.get("/configurations", summary="What can be chosen", responses=problem_responses(*READER_PROBLEMS))
async def configurations(request: Request, user: CurrentUserDependency) -> Any:
    """Configurations the assistant can work with, as the runtime names them."""
    try:
        return await services_of(request).remotes.runtime.configurations(user.uid)
    except RemoteError as error:
        raise as_problem(error) from error


@router.post(
    "/conversations",
    status_code=201,
    summary="Begin a conversation",
    responses=problem_responses(
        *READER_PROBLEMS, ConfigurationUnknownError, WorkspaceUnknownError, IdempotencyConflictError, body=True
    ),
)
async def create(
    body: ConversationCreate, request: Request, user: CurrentUserDependency, key: IdempotencyKeyHeader
) -> ConversationView:
    """Begin a conversation. ``workspaceId`` and ``assignmentScope`` hold for every run of it."""
    services = services_of(request)
    try:
        await services.conversations.check(user, body)
    except RemoteError as error:
        raise as_problem(error) from error
    async with services.database.unit_of_work() as session:

        async def work() -> ConversationView:
            return await services.conversations.create(session, user, body)

        return await _idempotency.run_once(session, key, _owner(user), ConversationView, work)


@router.get(
    "/conversations",
    summary="My conversations",
    responses=problem_responses(*READER_PROBLEMS, CursorInvalidError),
)
async def conversations(
    request: Request,
    user: CurrentUserDependency,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> ConversationPage:
    """The reader's conversations, newest activity first."""
    before = decode_place(cursor) if cursor is not None else None
    async with services_of(request).database.read() as session:
        rows = await repository.conversations(session, user.uid, before, limit + 1)
    more = len(rows) > limit
    place: tuple[datetime, UUID] | None = (rows[limit - 1].updated_at, rows[limit - 1].id) if more else None
    return ConversationPage(
        conversations=tuple(conversation_view(row) for row in rows[:limit]),
        next_cursor=encode_place(place) if place is not None else None,
    )


@router.get("/conversations/{conversation_id}", summary="One conversation", responses=problem_responses(*_FOUND))
async def conversation(conversation_id: UUID, request: Request, user: CurrentUserDependency) -> ConversationView:
    """A conversation of the reader."""
    async with services_of(request).database.read() as session:
        return conversation_view(await repository.owned(session, conversation_id, user.uid))


@router.patch("/conversations/{conversation_id}", summary="Rename", responses=problem_responses(*_FOUND, body=True))
async def rename(
    conversation_id: UUID, body: TitleChange, request: Request, user: CurrentUserDependency
) -> ConversationView:
    """Give a conversation another title."""
    services = services_of(request)
    async with services.database.unit_of_work() as session:
        return await services.conversations.rename(session, user, conversation_id, body.title)


@router.delete(
    "/conversations/{conversation_id}",
    status_code=204,
    response_class=Response,
    summary="Delete",
    responses=problem_responses(*_FOUND, TurnRunningError),
)
async def remove(conversation_id: UUID, request: Request, user: CurrentUserDependency) -> None:
    """Delete a conversation with its messages and lists. What was changed on the site stays."""
    services = services_of(request)
    async with services.database.unit_of_work() as session:
        await services.conversations.remove(session, user, conversation_id)


@router.post(
    "/conversations/{conversation_id}/messages",
    status_code=202,
    summary="Send a message",
    responses=problem_responses(*_FOUND, TurnRunningError, TooManyMessagesError, IdempotencyConflictError, body=True),
)
async def post_message(
    conversation_id: UUID,
    body: MessageCreate,
    request: Request,
    user: CurrentUserDependency,
    key: IdempotencyKeyHeader,
) -> MessageAccepted:
    """Store a message and start a run that answers it. A card that waits is left undecided by it.

    The message is kept when the assistant cannot be reached; its start is tried again for a while.
    """
    services = services_of(request)
    titles = await services.conversations.page_titles(user, conversation_id, body)
    async with services.database.unit_of_work() as session:

        async def work() -> MessageAccepted:
            return await services.conversations.post(session, user, conversation_id, body, titles)

        accepted = await _idempotency.run_once(session, key, _owner(user), MessageAccepted, work)
    await services.starter.start(accepted.message.id)
    async with services.database.read() as reading:
        status, error_code = await services.conversations.status(reading, user, conversation_id)
    return accepted.model_copy(update={"status": status, "error_code": error_code})


@router.post(
    "/conversations/{conversation_id}/cancel",
    status_code=202,
    summary="Stop the present turn",
    responses=problem_responses(*_FOUND, RemoteServiceUnavailableError),
)
async def cancel(conversation_id: UUID, request: Request, user: CurrentUserDependency) -> ConversationView:
    """Ask the run to stop at its next step; what it did before stays and is listed."""
    services = services_of(request)
    async with services.database.read() as session:
        row = await repository.owned(session, conversation_id, user.uid)
    if row.current_run is not None:
        try:
            await services.remotes.runtime.cancel(user.uid, row.current_run)
        except RemoteError as error:
            raise as_problem(error) from error
    return conversation_view(row)


@router.get(
    "/conversations/{conversation_id}/messages",
    summary="Messages, activity and the pending card",
    responses=problem_responses(*_FOUND),
)
async def messages(
    conversation_id: UUID,
    request: Request,
    user: CurrentUserDependency,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> ConversationMessages:
    """Messages after a sequence, with the status, what the present turn did, and the card that waits.

    Reads no event of a run: ``changesAvailable`` comes from the run record (R-110, R-111).
    """
    return await read_messages(services_of(request), user, conversation_id, after, limit)
