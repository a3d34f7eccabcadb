"""``GET /v1/history`` and ``GET /v1/record-events``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Query
from remit_contracts.base import Contract
from remit_contracts.events import RecordChanged
from remit_contracts.records import MAX_UID, TABLE_PATTERN
from service_kit.auth import Actor, TokenInvalidError, require_actor
from service_kit.problems import ValidationProblem, problem_responses
from service_kit.routing import Router

from content_store.access.users import load_user
from content_store.deps import EVENTS, READER_PROBLEMS, ReadingDependency, Services, services
from content_store.errors import (
    AdministratorsOnlyError,
    CursorInvalidError,
    RecordNotFoundError,
    TableNotFoundError,
    WorkspaceNotFoundError,
)
from content_store.events.repository import InvalidPositionError, list_record_events
from content_store.reads.endpoints import page_size
from content_store.reads.history import record_history
from content_store.reads.schemas import HistoryView

router = Router(prefix="/v1", tags=["history"])


@router.get(
    "/history",
    responses=problem_responses(
        *READER_PROBLEMS,
        WorkspaceNotFoundError,
        ValidationProblem,
        TableNotFoundError,
        RecordNotFoundError,
        CursorInvalidError,
    ),
)
async def history(
    reading: ReadingDependency,
    table: Annotated[str, Query(pattern=TABLE_PATTERN)],
    uid: Annotated[int, Query(ge=1, le=MAX_UID)],
    limit: Annotated[int, Query(ge=1, le=10_000)] = 50,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> HistoryView:
    """What happened to a record, newest first. Values of passwords are never told."""
    return await record_history(reading, table, uid, cursor, page_size(limit, reading.services))


class RecordEventView(Contract):
    """A published event of ``remit.records.v1``; ``position`` asks for what came after it."""

    id: UUID
    stream: str
    sequence: int
    time: datetime
    position: str
    change: RecordChanged


class RecordEventsView(Contract):
    """Events, oldest first."""

    events: list[RecordEventView]


@router.get(
    "/record-events",
    responses=problem_responses(*READER_PROBLEMS, AdministratorsOnlyError, ValidationProblem, CursorInvalidError),
)
async def record_events(
    actor: Annotated[Actor, require_actor(EVENTS)],
    found: Annotated[Services, Depends(services)],
    after: Annotated[str | None, Query(max_length=200, description="position of the last event known")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 200,
) -> RecordEventsView:
    """Events of committed record changes since a position, for consumers that missed some."""
    await _administrator_or_service(actor, found)
    try:
        events = await list_record_events(found.reads, after, page_size(limit, found))
    except InvalidPositionError as error:
        raise CursorInvalidError from error
    return RecordEventsView(
        events=[
            RecordEventView(
                id=event.id,
                stream=event.stream,
                sequence=event.sequence,
                time=event.time,
                position=event.position,
                change=event.change,
            )
            for event in events
        ]
    )


async def _administrator_or_service(actor: Actor, found: Services) -> None:
    """The events name records of the whole site: no list for editors."""
    if actor.service is not None:
        return
    loaded = await load_user(found.reads, actor.user_uid)
    if loaded is None:
        raise TokenInvalidError
    if not loaded.user.admin:
        raise AdministratorsOnlyError
