"""Starting, reading and cancelling runs (T-20, T-27, T-28, T-40)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from remit_contracts.runs import (
    ChatMessage,
    RunEventsAnswer,
    RunEventsQuery,
    RunStart,
    RunStatus,
    RunView,
    StepPage,
    TerminationReason,
)
from service_kit.auth import Actor
from service_kit.database import WriteSession
from service_kit.idempotency import Idempotency, IdempotencyKey

from agent_runtime.approvals.cards import CardReader
from agent_runtime.configurations.registry import ConfigurationRegistry
from agent_runtime.models.port import Message
from agent_runtime.runs.access import RunAccess, Sight
from agent_runtime.runs.errors import (
    ActorMismatchError,
    ConfigurationUnknownError,
    NotAllowedError,
    RunNotFoundError,
    ToolUnknownError,
    TransitionRefused,
)
from agent_runtime.runs.journal import RunJournal, status_step
from agent_runtime.runs.models import Entry, RunChange, RunRow, Unheld
from agent_runtime.runs.states import initial_messages, message_state
from agent_runtime.runs.views import run_view
from agent_runtime.steps.privacy import strictest
from agent_runtime.tools.registry import ToolRegistry

PAUSED = (RunStatus.QUEUED, RunStatus.WAITING_FOR_APPROVAL, RunStatus.WAITING_FOR_INPUT)
FIRST = UUID(int=0)


class RunService:
    """What the endpoints offer.

    Args:
        privacy_level: of the installation; the strictest of it and the configuration's counts.
        max_page: steps in one answer.
    """

    def __init__(
        self,
        journal: RunJournal,
        configurations: ConfigurationRegistry,
        registry: ToolRegistry,
        access: RunAccess,
        cards: CardReader,
        privacy_level: str,
        max_page: int,
    ) -> None:
        self._journal = journal
        self._configurations = configurations
        self._registry = registry
        self._access = access
        self._cards = cards
        self._privacy_level = privacy_level
        self._max_page = max_page
        self._idempotency = Idempotency()

    async def start(self, start: RunStart, caller: Actor, key: IdempotencyKey | None) -> RunView:
        """A queued run. The same key with the same body gives the same run, with another body a conflict (T-27).

        Raises:
            ActorMismatchError: the actor is somebody else.
            NotAllowedError: a user in person who is no administrator.
            ConfigurationUnknownError: no such configuration.
            ToolUnknownError: an allow-listed tool does not exist.
        """
        if start.actor.user_uid != caller.user_uid:
            raise ActorMismatchError
        if caller.service is None and not await self._access.is_admin(caller):
            raise NotAllowedError
        configuration = self._configurations.get(start.configuration)
        if configuration is None:
            raise ConfigurationUnknownError(configuration=start.configuration)
        unknown = sorted(set(start.tools or ()) - self._registry.names)
        if unknown:
            raise ToolUnknownError(members={"tools": unknown})
        level = strictest(self._privacy_level, configuration.privacy_level)
        starter = caller.service or f"user:{caller.user_uid}"
        messages = initial_messages(configuration.system_prompt, [_message(message) for message in start.messages])

        async with self._journal.database.unit_of_work() as session:

            async def work() -> RunView:
                run = await self._journal.runs.insert(session, start, caller.user_uid, starter, level)
                states = tuple(message_state(message) for message in messages)
                return run_view(await self._journal.start_in(session, run, states), self._journal.cipher)

            owner = f"{starter}:{caller.user_uid}"
            return await self._idempotency.run_once(session, key, owner, RunView, work)

    async def view(self, run_id: UUID, caller: Actor) -> RunView:
        """The run with its card, where it waits.

        Raises:
            RunNotFoundError: unknown, or not for this reader.
        """
        run, sight = await self._seen(run_id, caller, Sight.CARD)
        pending = await self._cards.pending(run, await self._cards.viewer(run, caller.user_uid))
        return run_view(run, self._journal.cipher, pending, card_only=sight is Sight.CARD)

    async def events(self, run_id: UUID, caller: Actor, after: int, kinds: Sequence[str] | None) -> StepPage:
        """Steps after a sequence.

        Raises:
            RunNotFoundError: unknown, or not for this reader.
        """
        run, _ = await self._seen(run_id, caller, Sight.FULL)
        return await self._page(run, after, kinds)

    async def many_events(self, query: RunEventsQuery, caller: Actor) -> RunEventsAnswer:
        """Steps of several runs; what is unknown or not readable is only counted (T-20)."""
        wanted = list(dict.fromkeys(query.runs))
        async with self._journal.database.read() as session:
            found = await self._journal.runs.many(session, wanted)
        admin = any(run.owner_uid != caller.user_uid for run in found) and await self._access.is_admin(caller)
        readable = {run.id: run for run in found if admin or run.owner_uid == caller.user_uid}
        pages = [
            await self._page(readable[run_id], query.after.get(str(run_id), 0), query.kinds)
            for run_id in wanted
            if run_id in readable
        ]
        return RunEventsAnswer(pages=tuple(pages), unreadable=len(wanted) - len(pages))

    async def cancel(self, run_id: UUID, caller: Actor) -> RunView:
        """Cancel: at once where nobody executes, else at the next step boundary; a settled run stays as it is.

        Raises:
            RunNotFoundError: unknown, or not for this reader.
        """
        await self._seen(run_id, caller, Sight.FULL)
        change = RunChange(
            status=RunStatus.CANCELLED,
            outcome="cancelled",
            termination_reason=TerminationReason.CANCELLED,
            release=True,
        )
        entry = Entry(change=change, steps=(status_step(RunStatus.CANCELLED, change),), clear_state=True)
        async with self._journal.database.unit_of_work() as session:
            if not await self._cancelled_call_free(session, run_id, entry):
                await self._journal.runs.request_cancel(session, run_id)
        async with self._journal.database.read() as session:
            run = await self._journal.runs.get(session, run_id)
        if run is None:
            raise RunNotFoundError
        return run_view(run, self._journal.cipher)

    async def inbox(self, caller: Actor, cursor: UUID | None, limit: int) -> list[RunView]:
        """Waiting runs the caller may decide, oldest first (T-40)."""
        admin = await self._access.is_admin(caller)
        approving = self._access.approving(caller.user_uid)
        async with self._journal.database.read() as session:
            runs = await self._journal.runs.waiting(session, caller.user_uid, approving, admin, cursor or FIRST, limit)
        owned = {run.id for run in runs if admin or run.owner_uid == caller.user_uid}
        return [run_view(run, self._journal.cipher, card_only=run.id not in owned) for run in runs]

    async def _cancelled_call_free(self, session: WriteSession, run_id: UUID, entry: Entry) -> bool:
        # A queued run with a write in flight is not cancelled here: its worker first finds out what the write did.
        states = await self._journal.runs.states(session, run_id)
        if any(kind == "call" for _, kind, _ in states):
            await self._journal.runs.mark_cancel(session, run_id)
            return True
        try:
            await self._journal.write_in(session, run_id, Unheld(PAUSED), entry)
        except TransitionRefused:
            return False
        return True

    async def _seen(self, run_id: UUID, caller: Actor, least: Sight) -> tuple[RunRow, Sight]:
        async with self._journal.database.read() as session:
            run = await self._journal.runs.get(session, run_id)
        if run is None:
            raise RunNotFoundError
        sight = await self._access.sight(run, caller)
        if sight < least:
            raise RunNotFoundError
        return run, sight

    async def _page(self, run: RunRow, after: int, kinds: Sequence[str] | None) -> StepPage:
        async with self._journal.database.read() as session:
            steps = await self._journal.steps.after(session, run.id, max(0, after), kinds, self._max_page)
        return StepPage(run_id=run.id, status=run.status, last_sequence=run.last_sequence, steps=tuple(steps))


def _message(message: ChatMessage) -> Message:
    return Message(role=message.role, content=message.content)
