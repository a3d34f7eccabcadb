"""One open stream: what is missing since the client's last id, then what comes, until token or time end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from remit_contracts.conversations import ServerEvent
from service_kit.client import RemoteError
from service_kit.clock import utc_now
from service_kit.database import Database
from service_kit.logging import get_logger

from chat_gateway.access.current_user import CurrentUser, LoginSessions
from chat_gateway.conversations.errors import ConversationNotFoundError
from chat_gateway.conversations.models import ConversationRow
from chat_gateway.conversations.repository import owned
from chat_gateway.stream.errors import TooManyStreamsError
from chat_gateway.stream.frames import HEARTBEAT, frame, retry_frame, unnumbered
from chat_gateway.stream.repository import events_after, oldest_event
from chat_gateway.stream.wakeup import Wakeup

logger = get_logger(__name__)
BATCH = 200
RETRY_MILLISECONDS = 3_000
STATE = "state"
RESET = "reset"
END = "end"


@dataclass(frozen=True)
class StreamTimes:
    """Seconds: between looks at the log, between comments, and how long a stream stays open."""

    poll: float
    heartbeat: float
    lifetime: float


class StreamService:
    """Streams of this process.

    Args:
        database: holds the log.
        wakeup: says when to look.
        sessions: whether the reader is still logged in.
        times: waits.
        limit: open streams.
    """

    def __init__(
        self, database: Database, wakeup: Wakeup, sessions: LoginSessions, times: StreamTimes, limit: int
    ) -> None:
        self._database = database
        self._wakeup = wakeup
        self._sessions = sessions
        self._times = times
        self._limit = limit
        self.open = 0

    async def check(self, user: CurrentUser, conversation_id: UUID) -> None:
        """Refuse before the stream begins, while a problem can still be answered.

        Raises:
            ConversationNotFoundError: not the user's.
            TooManyStreamsError: this process holds as many as it may.
        """
        if self.open >= self._limit:
            raise TooManyStreamsError(headers={"Retry-After": "5"})
        await self._conversation(user, conversation_id)

    async def frames(self, user: CurrentUser, conversation_id: UUID, last_id: int | None) -> AsyncIterator[bytes]:
        """The stream's bytes."""
        async with self._counted(), self._wakeup.watching(conversation_id) as signal:
            yield retry_frame(RETRY_MILLISECONDS)
            try:
                cursor, opening = await self._opening(user, conversation_id, last_id)
                if opening is not None:
                    yield frame(opening)
                async for part in self._tail(user, conversation_id, cursor, signal):
                    yield part
            except ConversationNotFoundError:
                yield unnumbered(END, {"reason": "conversation_not_found"})

    async def _opening(
        self, user: CurrentUser, conversation_id: UUID, last_id: int | None
    ) -> tuple[int, ServerEvent | None]:
        """Where to go on, and the state to begin with where nothing can be resumed: never a silent gap."""
        conversation = await self._conversation(user, conversation_id)
        if last_id is None:
            return conversation.last_event, _state(conversation, STATE)
        if last_id > conversation.last_event:
            return conversation.last_event, _state(conversation, RESET)
        async with self._database.read() as session:
            oldest = await oldest_event(session, conversation_id)
        missing = last_id < conversation.last_event if oldest is None else oldest > last_id + 1
        return (conversation.last_event, _state(conversation, RESET)) if missing else (last_id, None)

    async def _tail(
        self, user: CurrentUser, conversation_id: UUID, cursor: int, signal: asyncio.Event
    ) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._seconds_left(user)
        quiet_since = loop.time()
        while True:
            signal.clear()
            async with self._database.read() as session:
                events = await events_after(session, conversation_id, cursor, BATCH)
            for event in events:
                cursor = event.id
                yield frame(event)
            now = loop.time()
            if events:
                quiet_since = now
            elif now - quiet_since >= self._times.heartbeat:
                quiet_since = now
                yield HEARTBEAT
            if now >= ends or not await self._still_welcome(user):
                yield unnumbered(END, {"reason": "reconnect"})
                return
            if len(events) == BATCH:
                continue
            if not events:
                await self._conversation(user, conversation_id)
            await _wait(signal, max(0.0, min(self._times.poll, self._times.heartbeat, ends - now)))

    def _seconds_left(self, user: CurrentUser) -> float:
        """Until the token ends or the stream is old enough."""
        left = timedelta(seconds=self._times.lifetime)
        if user.expires_at is not None:
            left = min(left, user.expires_at - utc_now())
        return max(0.0, left.total_seconds())

    async def _still_welcome(self, user: CurrentUser) -> bool:
        if user.session_id is None:
            return True
        try:
            return await self._sessions.active(user.session_id)
        except RemoteError as error:
            logger.warning("stream closed: login cannot be checked", error=str(error))
            return False

    async def _conversation(self, user: CurrentUser, conversation_id: UUID) -> ConversationRow:
        async with self._database.read() as session:
            return await owned(session, conversation_id, user.uid)

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


def _state(conversation: ConversationRow, kind: str) -> ServerEvent:
    """Everything a client needs to know to load the rest."""
    return ServerEvent(
        id=conversation.last_event,
        type=kind,
        data={
            "status": conversation.status,
            "lastMessage": conversation.last_message,
            "changesAvailable": conversation.changes_available,
            "changesRevision": conversation.changes_revision,
        },
    )


async def _wait(signal: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await signal.wait()
    except TimeoutError:
        return
