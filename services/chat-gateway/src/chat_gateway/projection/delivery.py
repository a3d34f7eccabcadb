"""Brings steps into the projection, from the event stream or from the runtime's events API, each exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remit_contracts.events import RunStepEvent
from remit_contracts.runs import RunView
from remit_contracts.steps import Step
from service_kit.client import RemoteProblem
from service_kit.clock import utc_now
from service_kit.database import Database, WriteSession
from service_kit.inbox import Inbox
from service_kit.logging import get_logger
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from chat_gateway.clients.ports import RuntimePort
from chat_gateway.conversations.models import ConversationRow, MessageRow, RunStartRow
from chat_gateway.projection.apply import MissingStepsError, Projector, closes_segment
from chat_gateway.projection.transient import is_transient
from chat_gateway.segments import repository
from chat_gateway.segments.models import RunRow
from chat_gateway.stream.wakeup import Wakeup

logger = get_logger(__name__)
CONSUMER = "run-steps"


class Delivery:
    """Applies steps to conversations.

    Args:
        database: of the gateway.
        runtime: where missing steps, cards and final texts come from.
        projector: the rules.
        wakeup: tells open streams after the commit.
    """

    def __init__(self, database: Database, runtime: RuntimePort, projector: Projector, wakeup: Wakeup) -> None:
        self._database = database
        self._runtime = runtime
        self._projector = projector
        self._wakeup = wakeup
        self._inbox = Inbox(CONSUMER)

    async def events(self, received: Sequence[tuple[UUID, RunStepEvent]]) -> None:
        """Take events of one run, each with its id. Events of runs that belong to no conversation here are left alone.

        Raises:
            MissingStepsError: steps before them cannot be had yet; the events have to come again.
        """
        event = received[0][1]
        if event.conversation_id is None or await self._next_steps(event.conversation_id, received):
            return
        last = await self._last_sequence(event)
        if last is None:
            return
        fresh = {event_id: item.step for event_id, item in received if item.step.sequence > last}
        if not fresh:
            return
        steps: Sequence[Step] = tuple(fresh.values())
        if _gap(last, steps):
            found = await self._fetch(event.user_uid, event.run_id, last)
            if found is None:
                await self.unreadable(event.conversation_id, event.run_id)
                return
            if not found:
                raise MissingStepsError
            steps = found
        await self.steps(event.conversation_id, event.run_id, event.user_uid, steps, event_ids=tuple(fresh))

    async def _next_steps(self, conversation_id: UUID, received: Sequence[tuple[UUID, RunStepEvent]]) -> bool:
        """Apply events at once that need nothing from the runtime, without looking first what is there.

        Returns:
            Whether they are done with; not where steps before them are missing, or one ends a segment.
        """
        steps = [item.step for _, item in received]
        if any(closes_segment(step) for step in steps):
            return False
        event = received[0][1]
        ids = [event_id for event_id, _ in received]
        try:
            await self.steps(conversation_id, event.run_id, event.user_uid, steps, event_ids=ids)
        except MissingStepsError:
            return False
        return True

    async def steps(
        self,
        conversation_id: UUID,
        run_id: UUID,
        user_uid: int,
        steps: Sequence[Step],
        *,
        event_ids: Sequence[UUID] = (),
    ) -> int:
        """Apply steps of one run in one transaction; those that are there already are dropped.

        Returns:
            Number of steps applied.
        """
        view = await self._view(user_uid, run_id) if any(closes_segment(step) for step in steps) else None
        try:
            return await self._write(conversation_id, run_id, user_uid, steps, view, event_ids, tolerant=False)
        except DBAPIError as error:
            if is_transient(error):
                raise
            logger.warning("steps are applied one by one", run_id=str(run_id), exc_info=error)
            return await self._write(conversation_id, run_id, user_uid, steps, view, event_ids, tolerant=True)

    async def unreadable(self, conversation_id: UUID, run_id: UUID) -> None:
        """The runtime does not show this run to its owner any more."""
        async with self._database.unit_of_work() as session:
            conversation = await lock_conversation(session, conversation_id)
            run = await session.get(RunRow, run_id)
            if conversation is None or run is None or not run.readable:
                return
            await self._projector.give_up(session, conversation, run, utc_now())
            self._wakeup.after_commit(session, conversation.id)

    async def _write(
        self,
        conversation_id: UUID,
        run_id: UUID,
        user_uid: int,
        steps: Sequence[Step],
        view: RunView | None,
        event_ids: Sequence[UUID],
        *,
        tolerant: bool,
    ) -> int:
        async with self._database.unit_of_work() as session:
            conversation = await lock_conversation(session, conversation_id)
            if conversation is None or conversation.owner_uid != user_uid:
                return 0
            if event_ids and not await self._inbox.unseen(session, event_ids):
                return 0
            run = await self._run(session, conversation, run_id)
            if run is None:
                return 0
            applied = await self._projector.apply(session, conversation, run, steps, view, tolerant=tolerant)
            if applied:
                run.readable = True
                self._wakeup.after_commit(session, conversation.id)
            return applied

    async def _run(self, session: WriteSession, conversation: ConversationRow, run_id: UUID) -> RunRow | None:
        """The run; one whose first event is here before the answer to its start is adopted."""
        run = await session.get(RunRow, run_id)
        if run is not None:
            return run if run.conversation_id == conversation.id else None
        return await adopt_run(session, conversation, run_id)

    async def _last_sequence(self, event: RunStepEvent) -> int | None:
        """How far the run is projected; none where its conversation is not here or belongs to somebody else."""
        async with self._database.read() as session:
            found = (
                await session.execute(
                    select(ConversationRow.owner_uid, RunRow.last_sequence, RunRow.conversation_id)
                    .outerjoin(RunRow, RunRow.id == event.run_id)
                    .where(ConversationRow.id == event.conversation_id)
                )
            ).one_or_none()
        if found is None or found.owner_uid != event.user_uid:
            return None
        if found.last_sequence is None:
            return 0
        return int(found.last_sequence) if found.conversation_id == event.conversation_id else None

    async def _fetch(self, user_uid: int, run_id: UUID, after: int) -> Sequence[Step] | None:
        """Steps after a sequence; none where the runtime does not show the run to its owner."""
        answer = await self._runtime.events(user_uid, [run_id], {run_id: after})
        return next((page.steps for page in answer.pages if page.run_id == run_id), None)

    async def _view(self, user_uid: int, run_id: UUID) -> RunView | None:
        try:
            return await self._runtime.view(user_uid, run_id)
        except RemoteProblem as problem:
            if problem.status == 404:
                return None
            raise


def _gap(last: int, steps: Sequence[Step]) -> bool:
    """Whether steps between the last one projected and these are missing."""
    sequences = sorted({step.sequence for step in steps})
    return sequences != list(range(last + 1, last + 1 + len(sequences)))


async def lock_conversation(session: WriteSession, conversation_id: UUID) -> ConversationRow | None:
    """The conversation's row, locked to the end of the transaction; every writer takes this lock first."""
    return (
        await session.scalars(select(ConversationRow).where(ConversationRow.id == conversation_id).with_for_update())
    ).one_or_none()


async def adopt_run(session: WriteSession, conversation: ConversationRow, run_id: UUID) -> RunRow | None:
    """Bind a run to the start it answers, a waiting one before one that was given up; none where there is neither."""
    start = (
        await session.scalars(
            select(RunStartRow)
            .where(RunStartRow.conversation_id == conversation.id, RunStartRow.state.in_(("pending", "failed")))
            .order_by(RunStartRow.state.desc(), RunStartRow.created_at)
            .limit(1)
        )
    ).one_or_none()
    if start is None:
        return None
    given_up = start.state == "failed"
    start.state = "started"
    start.body = None
    run = await repository.add_run(session, conversation, run_id, start.message_id, "queued")
    # A start that was given up and had happened all the same: its turn is over, but what it writes must be listed.
    run.abandoned = given_up
    if not given_up:
        conversation.current_run = run_id
    message = await session.get(MessageRow, start.message_id)
    if message is not None:
        message.run_id = run_id
    return run
