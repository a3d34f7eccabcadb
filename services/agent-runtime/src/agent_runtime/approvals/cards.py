"""Reads the card of a waiting run for one viewer: what the viewer may see of it is asked of the store (T-30, P-01)."""

from __future__ import annotations

from remit_contracts.records import RecordReference
from remit_contracts.runs import PendingTurn
from service_kit.client import RemoteError
from service_kit.logging import get_logger
from service_kit.texts import Texts

from agent_runtime.approvals.card import WITHHELD, Viewer, pending_turn
from agent_runtime.approvals.turns import TurnState
from agent_runtime.clients.store import StoreClient
from agent_runtime.configurations.registry import ConfigurationRegistry
from agent_runtime.runs.envelope import StateUnreadable
from agent_runtime.runs.errors import StateUnreadableError
from agent_runtime.runs.journal import RunJournal
from agent_runtime.runs.models import RunRow
from agent_runtime.runs.states import RunState, read_state
from agent_runtime.tools.registry import ToolRegistry

logger = get_logger(__name__)


class CardReader:
    """Cards out of stored turns."""

    def __init__(
        self,
        journal: RunJournal,
        store: StoreClient,
        configurations: ConfigurationRegistry,
        registry: ToolRegistry,
        texts: Texts,
    ) -> None:
        self._journal = journal
        self._store = store
        self._configurations = configurations
        self._registry = registry
        self._texts = texts

    async def state(self, run: RunRow) -> RunState:
        """The stored state of a run.

        Raises:
            StateUnreadableError: damaged or of an unknown version; the run stays as it is (T-25).
        """
        async with self._journal.database.read() as session:
            rows = await self._journal.runs.states(session, run.id)
        try:
            return read_state(self._journal.cipher, rows)
        except StateUnreadable as error:
            logger.error("state unreadable", run_id=str(run.id), reason=error.reason)
            raise StateUnreadableError from error

    async def viewer(self, run: RunRow, user_uid: int, turn: TurnState | None = None) -> Viewer:
        """Who looks, and which records of the turn this person may see; what cannot be asked is withheld."""
        owner = user_uid == run.owner_uid
        withheld = self._texts.text(WITHHELD, run.actor.locale)
        if not run.status.waiting and turn is None:
            return Viewer(user_uid, owner, withheld)
        if turn is None:
            turn = (await self.state(run)).turn
        wanted: dict[str, RecordReference] = {}
        for call in turn.card_calls() if turn is not None else ():
            if call.affected is not None and call.affected.uid is not None:
                wanted[call.call_id] = RecordReference(table=call.affected.table, uid=call.affected.uid)
        workspace = run.actor.workspace_id
        try:
            answer = await self._store.visibility(user_uid, list(wanted.values())[:500], workspace)
        except RemoteError as error:
            logger.warning("visibility not available", reason=str(error))
            hidden = (
                frozenset() if owner else frozenset(call.call_id for call in turn.card_calls()) if turn else frozenset()
            )
            return Viewer(user_uid, owner, withheld, None, hidden)
        visible = {(record.table, record.uid) for record in answer.records}
        # The previews were made with the owner's rights; somebody else sees only what they may see in person.
        hidden = frozenset(
            call_id for call_id, record in wanted.items() if not owner and (record.table, record.uid) not in visible
        )
        return Viewer(user_uid, owner, withheld, answer.workspace_titles.get(workspace), hidden)

    async def pending(self, run: RunRow, viewer: Viewer, turn: TurnState | None = None) -> PendingTurn | None:
        """The card, none where the run does not wait."""
        if not run.status.waiting and turn is None:
            return None
        if turn is None:
            turn = (await self.state(run)).turn
        if turn is None:
            return None
        return pending_turn(
            turn,
            viewer,
            run.actor.workspace_id,
            self._configurations.get(run.configuration),
            self._registry.names,
            run.actor.assignment_scope,
        )
