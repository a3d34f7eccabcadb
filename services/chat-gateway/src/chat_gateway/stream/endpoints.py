"""``GET /v1/conversations/{id}/events``: server-sent events."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Header, Request
from service_kit.problems import problem_responses
from service_kit.routing import Router
from starlette.responses import StreamingResponse

from chat_gateway.access.current_user import CurrentUserDependency
from chat_gateway.conversations.errors import ConversationNotFoundError
from chat_gateway.deps import READER_PROBLEMS
from chat_gateway.stream.errors import TooManyStreamsError
from chat_gateway.stream.frames import last_event_id
from chat_gateway.stream.service import StreamService

router = Router(prefix="/v1/conversations", tags=["stream"])


@router.get(
    "/{conversation_id}/events",
    summary="Be told when something changed",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "The stream"},
        **problem_responses(*READER_PROBLEMS, ConversationNotFoundError, TooManyStreamsError),
    },
)
async def events(
    conversation_id: UUID,
    request: Request,
    user: CurrentUserDependency,
    last_id: Annotated[str | None, Header(alias="Last-Event-ID", max_length=100)] = None,
) -> StreamingResponse:
    """Events ``status``, ``message``, ``activity``, ``card`` and ``changes`` say only that something changed.

    ``Last-Event-ID`` resumes without a gap; where that is not possible, ``reset`` says to load everything anew. Without
    it the stream begins with ``state``. It ends, with ``end``, when the access token does or after some minutes: connect
    again.
    """
    streams: StreamService = request.app.state.streams
    await streams.check(user, conversation_id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        streams.frames(user, conversation_id, last_event_id(last_id)), media_type="text/event-stream", headers=headers
    )
