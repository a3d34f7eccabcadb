"""Decides on cards and answers questions: checked here, decided by the runtime (R-128, R-130)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from remit_contracts.runs import AnswerRequest, Decision, DecisionRequest, PendingTurn, RunStatus
from service_kit.client import RemoteError, RemoteProblem
from service_kit.database import Database
from service_kit.logging import get_logger
from service_kit.texts import Texts

from chat_gateway.access.current_user import CurrentUser
from chat_gateway.access.errors import VisibilityUnavailableError
from chat_gateway.access.languages import LanguageTitles
from chat_gateway.access.visibility import VisibilityFilter, Visible
from chat_gateway.approvals.errors import (
    ApproveBlockedError,
    DecisionIncompleteError,
    DecisionUnknownError,
    NotAQuestionError,
    NothingPendingError,
    TurnStaleError,
    unanswered,
)
from chat_gateway.approvals.presenter import Known, blocked_reasons, names_languages, present_card
from chat_gateway.approvals.rehearsed import asked_of_turn
from chat_gateway.approvals.schemas import ApprovalCard, DecisionAccepted
from chat_gateway.clients.ports import RuntimePort, StorePort
from chat_gateway.conversations.models import RUNNING, ConversationRow
from chat_gateway.conversations.repository import owned
from chat_gateway.segments.kept import storable
from chat_gateway.segments.models import RunRow
from chat_gateway.segments.opening import GivenDecision
from chat_gateway.stream.repository import CARD, STATUS, append_event
from chat_gateway.stream.wakeup import Wakeup

logger = get_logger(__name__)
_WAITING = frozenset(status.value for status in RunStatus if status.waiting)


class ApprovalService:
    """Cards of conversations.

    Args:
        database: of the gateway.
        runtime: decides.
        store: knows the tables a viewer may select.
        visibility: the permission filter.
        languages: their titles.
        texts: catalogues.
        wakeup: of open streams.
        decision_timeout: seconds until a decision that was sent counts as unanswered.
    """

    def __init__(
        self,
        database: Database,
        runtime: RuntimePort,
        store: StorePort,
        visibility: VisibilityFilter,
        languages: LanguageTitles,
        texts: Texts,
        wakeup: Wakeup,
        *,
        decision_timeout: float,
    ) -> None:
        self._database = database
        self._runtime = runtime
        self._store = store
        self._visibility = visibility
        self._languages = languages
        self._texts = texts
        self._wakeup = wakeup
        self._decision_timeout = decision_timeout

    async def card(self, viewer: CurrentUser, conversation: ConversationRow) -> ApprovalCard | None:
        """The pending card for its viewer, none where nobody has to act."""
        turn = pending_turn(conversation)
        if turn is None or conversation.current_run is None:
            return None
        return await self.present(viewer, conversation, conversation.current_run, turn)

    async def present(
        self, viewer: CurrentUser, conversation: ConversationRow, run: UUID, turn: PendingTurn
    ) -> ApprovalCard:
        """A card in the viewer's language, with the records the viewer may see."""

        def words(text: str, **params: Any) -> str:
            return self._texts.text(text, viewer.locale, **params)

        visible, tables = await self._seen(viewer, conversation, turn)
        languages = await self._languages.of(viewer.uid) if names_languages(turn) else {}
        return present_card(turn, run, Known(visible, tables, languages), words)

    async def _seen(
        self, viewer: CurrentUser, conversation: ConversationRow, turn: PendingTurn
    ) -> tuple[Visible | None, Mapping[str, str]]:
        """What the viewer may see of it; a card is shown also where that cannot be checked, but then names nothing."""
        asked = asked_of_turn(turn)
        if not asked:
            return Visible(), {}
        try:
            visible = await self._visibility.see(viewer.uid, asked, conversation.workspace_id)
            return visible, await self._store.readable_tables(viewer.uid)
        except (VisibilityUnavailableError, RemoteError) as error:
            logger.warning("card shown without records", error=type(error).__name__)
            return None, {}

    async def decide(self, viewer: CurrentUser, conversation_id: UUID, request: DecisionRequest) -> DecisionAccepted:
        """Pass a decision on, once it fits the card that waits.

        Raises:
            TurnStaleError: another card waits; it comes along.
            NothingPendingError: nothing waits.
            DecisionIncompleteError: not every pending call exactly once.
            ApproveBlockedError: the card cannot be approved.
            DecisionUnknownError: it was sent and not answered in time; it may have been taken.
        """
        conversation, run, turn = await self._waiting(viewer, conversation_id, request.turn_digest)
        if turn.kind != "approval":
            raise NotAQuestionError
        decisions = decisions_per_call(request, turn)
        reasons = blocked_reasons(turn)
        if reasons and Decision.APPROVE in decisions.values():
            raise ApproveBlockedError(members={"approveBlocked": reasons[0], "approveBlockedReasons": list(reasons)})
        given = GivenDecision.of_calls({call: said.value for call, said in decisions.items()}, request.reason)
        await self._pass_on(viewer, conversation, run, given, lambda: self._runtime.decide(viewer.uid, run, request))
        return await self._went_on(conversation.id, run, turn.turn_digest)

    async def answer(self, viewer: CurrentUser, conversation_id: UUID, request: AnswerRequest) -> DecisionAccepted:
        """Pass an answer on; raises as :meth:`decide`."""
        conversation, run, turn = await self._waiting(viewer, conversation_id, request.turn_digest)
        if turn.kind != "input":
            raise NotAQuestionError
        given = GivenDecision.answered()
        await self._pass_on(viewer, conversation, run, given, lambda: self._runtime.answer(viewer.uid, run, request))
        return await self._went_on(conversation.id, run, turn.turn_digest)

    async def _pass_on(
        self,
        viewer: CurrentUser,
        conversation: ConversationRow,
        run: UUID,
        given: GivenDecision,
        send: Callable[[], Awaitable[object]],
    ) -> None:
        """Send it, and raise what the editor has to know where it was not taken or nobody knows."""
        before = await self._remember(run, given.stored())
        try:
            async with asyncio.timeout(self._decision_timeout):
                await send()
        except (RemoteError, TimeoutError) as error:
            logger.warning("decision not taken or not answered", run_id=str(run), error=str(error) or "timeout")
            raise await self._refused(viewer, conversation, run, before, error) from error

    async def _waiting(
        self, viewer: CurrentUser, conversation_id: UUID, digest: str
    ) -> tuple[ConversationRow, UUID, PendingTurn]:
        async with self._database.read() as session:
            conversation = await owned(session, conversation_id, viewer.uid)
        turn = pending_turn(conversation)
        if turn is None or conversation.current_run is None:
            raise NothingPendingError(members={"runStatus": conversation.status})
        if turn.turn_digest != digest:
            raise await self._stale(viewer, conversation, conversation.current_run, turn)
        return conversation, conversation.current_run, turn

    async def _stale(
        self, viewer: CurrentUser, conversation: ConversationRow, run: UUID, turn: PendingTurn
    ) -> TurnStaleError:
        card = await self.present(viewer, conversation, run, turn)
        return TurnStaleError(members={"pendingApproval": card.model_dump(mode="json")})

    async def _remember(self, run_id: UUID, given: dict[str, Any] | None) -> dict[str, Any] | None:
        """Keep what was said until its segment closes, for a runtime whose steps do not say it; returns what was kept."""
        async with self._database.unit_of_work() as session:
            run = await session.get(RunRow, run_id, with_for_update=True)
            if run is None:
                return None
            before, run.given = run.given, given
            return before

    async def _refused(
        self,
        viewer: CurrentUser,
        conversation: ConversationRow,
        run: UUID,
        before: dict[str, Any] | None,
        error: RemoteError | TimeoutError,
    ) -> Exception:
        """What the runtime's refusal means here; without an answer the decision may still be taken, so it is kept."""
        problem = unanswered(error)
        if isinstance(problem, DecisionUnknownError):
            return problem
        # An earlier decision may have been the one that was taken.
        await self._remember(run, before)
        if not isinstance(error, RemoteProblem):
            return problem
        if error.code == "turn_stale":
            fresh = _turn(error.document.get("pending"))
            if fresh is None:
                return TurnStaleError()
            await self._replace(conversation.id, run, fresh)
            return await self._stale(viewer, conversation, run, fresh)
        if error.code == "run_not_waiting":
            found = error.document.get("run")
            status = found.get("status") if isinstance(found, Mapping) else None
            return NothingPendingError(members={"runStatus": status})
        if error.code == "decision_incomplete":
            return DecisionIncompleteError()
        return problem

    async def _replace(self, conversation_id: UUID, run: UUID, turn: PendingTurn) -> None:
        async with self._database.unit_of_work() as session:
            conversation = await session.get(ConversationRow, conversation_id, with_for_update=True)
            if conversation is None or conversation.current_run != run or conversation.status not in _WAITING:
                return
            conversation.pending = storable(turn.model_dump(mode="json"))
            append_event(session, conversation, CARD, {"turnDigest": turn.turn_digest})
            self._wakeup.after_commit(session, conversation.id)

    async def _went_on(self, conversation_id: UUID, run: UUID, digest: str) -> DecisionAccepted:
        """The card is gone, unless the run is already further than that."""
        async with self._database.unit_of_work() as session:
            conversation = await session.get(ConversationRow, conversation_id, with_for_update=True)
            if conversation is None:
                return DecisionAccepted(status=RUNNING)
            turn = pending_turn(conversation)
            if conversation.current_run == run and turn is not None and turn.turn_digest == digest:
                conversation.pending = None
                conversation.status = RUNNING
                append_event(session, conversation, STATUS, {"status": RUNNING})
                self._wakeup.after_commit(session, conversation.id)
            return DecisionAccepted(status=conversation.status)


def pending_turn(conversation: ConversationRow) -> PendingTurn | None:
    """The card that waits, none where the conversation does not wait."""
    if conversation.status not in _WAITING or conversation.pending is None:
        return None
    return _turn(conversation.pending)


def _turn(value: object) -> PendingTurn | None:
    try:
        return PendingTurn.model_validate(value)
    except ValidationError:
        return None


def decisions_per_call(request: DecisionRequest, turn: PendingTurn) -> dict[str, Decision]:
    """One decision per pending call, from either form (T-33).

    Raises:
        DecisionIncompleteError: with the calls that are missing and the ones nobody knows.
    """
    pending = [call.call_id for call in turn.calls]
    if (request.decisions is None) == (request.decision is None):
        raise DecisionIncompleteError(members={"missing": pending, "unknown": []})
    if request.decision is not None:
        return dict.fromkeys(pending, request.decision)
    decisions = request.decisions or {}
    missing = [call for call in pending if call not in decisions]
    unknown = [call for call in decisions if call not in pending]
    if missing or unknown:
        raise DecisionIncompleteError(members={"missing": missing, "unknown": unknown})
    return dict(decisions)
