"""``GET /v1/conversations/{id}/changes``."""

from __future__ import annotations

import hashlib
from typing import Annotated
from uuid import UUID

from fastapi import Header, Query, Request, Response
from remit_contracts.conversations import ChangeList
from service_kit.problems import problem_responses
from service_kit.routing import Router

from chat_gateway.access.current_user import CurrentUserDependency
from chat_gateway.access.errors import VisibilityUnavailableError
from chat_gateway.changes.reader import page_of
from chat_gateway.conversations.errors import ConversationNotFoundError, CursorInvalidError
from chat_gateway.deps import READER_PROBLEMS, ChangeReaderDependency

router = Router(prefix="/v1/conversations", tags=["changes"])


@router.get(
    "/{conversation_id}/changes",
    summary="What this assignment changed",
    response_model=ChangeList,
    responses={
        304: {"description": "Nothing changed for this reader since the ETag"},
        **problem_responses(
            *READER_PROBLEMS, ConversationNotFoundError, CursorInvalidError, VisibilityUnavailableError
        ),
    },
)
async def changes(
    conversation_id: UUID,
    request: Request,
    user: CurrentUserDependency,
    reader: ChangeReaderDependency,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """The records the assistant's steps changed, as far as the reader may see them. The list is read-only.

    The ETag names the list's revision and what the reader sees of it, so a right that was given or taken away changes
    it too.
    """
    found = page_of(await reader.read(user, conversation_id), cursor, limit)
    body = found.model_dump_json(by_alias=True).encode()
    etag = f'"{found.changes_revision}-{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", "Vary": "Authorization, Accept-Language"}
    offered = {item.strip().removeprefix("W/") for item in (if_none_match or "").split(",")}
    if etag in offered:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers={**headers, "Content-Language": user.locale})
