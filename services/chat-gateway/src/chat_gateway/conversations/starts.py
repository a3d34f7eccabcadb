"""Starts runs: the start is stored with its message and sent, again if need be, under a key of its own (T-27)."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from remit_contracts.runs import RunStatus, RunView
from service_kit.client import RemoteProblem, RemoteUnavailable
from service_kit.clock import utc_now
from service_kit.database import Database, WriteSession
from service_kit.logging import get_logger
from sqlalchemy import select

from chat_gateway.clients.ports import RuntimePort
from chat_gateway.conversations import repository
from chat_gateway.conversations.models import RUNNING, STARTING, ConversationRow, MessageRow, RunStartRow
from chat_gateway.projection.delivery import lock_conversation
from chat_gateway.segments import repository as segments
from chat_gateway.segments.run_record import UNKNOWN, EntryFrame, build_entry
from chat_gateway.stream.repository import STATUS, append_event
from chat_gateway.stream.wakeup import Wakeup

logger = get_logger(__name__)
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


class RunStarter:
    """Sends stored starts.

    Args:
        give_up_after: seconds a start is tried before the turn fails.
        pause: seconds between attempts.
    """

    def __init__(
        self, database: Database, runtime: RuntimePort, wakeup: Wakeup, *, give_up_after: float, pause: float
    ) -> None:
        self._database = database
        self._runtime = runtime
        self._wakeup = wakeup
        self._give_up_after = timedelta(seconds=give_up_after)
        self._pause = timedelta(seconds=pause)

    async def start(self, message_id: UUID) -> None:
        """Send one stored start; a runtime that does not answer leaves it for another attempt."""
        async with self._database.read() as session:
            row = await session.get(RunStartRow, message_id)
        if row is None or row.state != "pending" or row.body is None:
            return
        try:
            view = await self._runtime.start(row.user_uid, row.body, f"message-{message_id}")
        except RemoteUnavailable as error:
            await self._failed(row, "runtime_unavailable", final=self._overdue(row), cause=error)
        except RemoteProblem as problem:
            passing = problem.status in _PASSING and not self._overdue(row)
            await self._failed(row, problem.code, final=not passing, cause=problem)
        else:
            await self._started(row, view)

    async def retry_due(self, limit: int = 50) -> int:
        """Send every start that is due; safe beside others doing the same, since the key is the same."""
        async with self._database.read() as session:
            due = await repository.due_starts(session, limit)
        for message_id in due:
            await self.start(message_id)
        return len(due)

    def _overdue(self, row: RunStartRow) -> bool:
        return utc_now() - row.created_at > self._give_up_after

    async def _started(self, row: RunStartRow, view: RunView) -> None:
        async with self._database.unit_of_work() as session:
            conversation = await lock_conversation(session, row.conversation_id)
            start = await _pending(session, row.message_id)
            if conversation is None or start is None:
                return
            start.state = "started"
            start.body = None
            await segments.add_run(session, conversation, view.id, row.message_id, RunStatus.QUEUED.value)
            message = await session.get(MessageRow, row.message_id)
            if message is not None:
                message.run_id = view.id
            conversation.current_run = view.id
            if conversation.status == STARTING:
                conversation.status = RUNNING
                append_event(session, conversation, STATUS, {"status": RUNNING})
            self._wakeup.after_commit(session, conversation.id)

    async def _failed(self, row: RunStartRow, code: str, *, final: bool, cause: Exception) -> None:
        logger.warning("run not started", message_id=str(row.message_id), code=code, final=final, error=str(cause))
        async with self._database.unit_of_work() as session:
            conversation = await lock_conversation(session, row.conversation_id)
            start = await _pending(session, row.message_id)
            if conversation is None or start is None:
                return
            start.attempts += 1
            start.next_attempt = utc_now() + self._pause
            if not final:
                return
            start.state = "failed"
            start.body = None
            await self._record_failure(session, conversation, row.message_id, code)
            self._wakeup.after_commit(session, conversation.id)

    async def _record_failure(
        self, session: WriteSession, conversation: ConversationRow, message_id: UUID, code: str
    ) -> None:
        """The turn ended before the runtime returned a step: its outcome is unknown (R-002)."""
        frame = EntryFrame(after=message_id, outcome=UNKNOWN, run=None, segment=None)
        await segments.append_entry(session, conversation, build_entry((), (), frame))
        conversation.status = RunStatus.FAILED.value
        conversation.error_code = code
        conversation.updated_at = utc_now()
        append_event(session, conversation, STATUS, {"status": conversation.status})


async def _pending(session: WriteSession, message_id: UUID) -> RunStartRow | None:
    """The start, locked, unless it is settled: the first event of its run may have come before this answer."""
    return (
        await session.scalars(
            select(RunStartRow)
            .where(RunStartRow.message_id == message_id, RunStartRow.state == "pending")
            .with_for_update()
        )
    ).one_or_none()
