"""Conversations of a user: create, list, rename, remove, and post a message that starts a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from remit_contracts.actor import ActorRequest
from remit_contracts.conversations import ConversationCreate, ConversationView, MessageCreate, MessageView
from remit_contracts.runs import ChatMessage, RunStart, RunStatus
from remit_contracts.scope import AssignmentScope
from remit_contracts.visibility import RecordKey, VisibilityRequest
from service_kit.client import RemoteError
from service_kit.clock import utc_now
from service_kit.database import Database, ReadSession, WriteSession
from service_kit.ids import uuid7
from service_kit.logging import get_logger

from chat_gateway.access.current_user import CurrentUser
from chat_gateway.clients.ports import RuntimePort, StorePort
from chat_gateway.conversations import repository
from chat_gateway.conversations.errors import (
    ConfigurationUnknownError,
    TooManyMessagesError,
    TurnRunningError,
    WorkspaceUnknownError,
)
from chat_gateway.conversations.models import BUSY, IDLE, STARTING, ConversationRow, MessageRow, RunStartRow
from chat_gateway.conversations.schemas import MessageAccepted
from chat_gateway.conversations.transcript import MAX_MESSAGES, build_transcript
from chat_gateway.conversations.view_context import carried_over, page_to_name, prompt_text
from chat_gateway.segments import repository as segments
from chat_gateway.segments.kept import storable
from chat_gateway.segments.models import RunRow
from chat_gateway.stream.repository import MESSAGE, STATUS, append_event
from chat_gateway.stream.wakeup import Wakeup

logger = get_logger(__name__)
TITLE_LENGTH = 60
_WAITING = frozenset(status.value for status in RunStatus if status.waiting)


class ConversationService:
    """What a user may do with conversations.

    Args:
        database: of the gateway.
        runtime: knows the configurations.
        store: knows titles of pages.
        wakeup: of open streams.
        max_messages: a conversation may hold.
    """

    def __init__(
        self, database: Database, runtime: RuntimePort, store: StorePort, wakeup: Wakeup, *, max_messages: int
    ) -> None:
        self._database = database
        self._runtime = runtime
        self._store = store
        self._wakeup = wakeup
        self._max_messages = max_messages

    async def check(self, user: CurrentUser, body: ConversationCreate) -> None:
        """Refuse what could never run.

        Raises:
            ConfigurationUnknownError: no such configuration for this user.
            WorkspaceUnknownError: no workspace the user may work in.
        """
        names = configuration_names(await self._runtime.configurations(user.uid))
        if names is not None and body.configuration not in names:
            raise ConfigurationUnknownError
        if body.workspace_id not in await self._store.workspaces(user.uid):
            raise WorkspaceUnknownError

    async def create(self, session: WriteSession, user: CurrentUser, body: ConversationCreate) -> ConversationView:
        """Create a conversation; workspace and scope hold for every run of it (R-065)."""
        now = utc_now()
        scope = body.assignment_scope.model_dump(mode="json") if body.assignment_scope is not None else None
        row = ConversationRow(
            id=uuid7(),
            owner_uid=user.uid,
            title=clean_title(body.title or ""),
            configuration=body.configuration,
            workspace_id=body.workspace_id,
            assignment_scope=scope,
            status=IDLE,
            last_message=0,
            last_event=0,
            last_entry=0,
            last_run=0,
            changes_available=False,
            changes_revision=0,
            created_at=now,
            updated_at=now,
        )
        session.add(row)
        await session.flush()
        return conversation_view(row)

    async def page_titles(self, user: CurrentUser, conversation_id: UUID, body: MessageCreate) -> dict[int, str]:
        """Titles of pages the prompt may name, as the owner may see them now; none where that cannot be told (R-063)."""
        async with self._database.read() as session:
            row = await repository.owned(session, conversation_id, user.uid)
        page = page_to_name(carried_over(row.view_context, body.view_context))
        if page is None:
            return {}
        request = VisibilityRequest(records=[RecordKey(table="pages", uid=page)], workspace_id=row.workspace_id)
        try:
            answer = await self._store.visibility(user.uid, request)
        except RemoteError as error:
            logger.warning("page title not known", error=str(error))
            return {}
        return {record.uid: record.title for record in answer.records if record.table == "pages"}

    async def post(
        self,
        session: WriteSession,
        user: CurrentUser,
        conversation_id: UUID,
        body: MessageCreate,
        titles: Mapping[int, str],
    ) -> MessageAccepted:
        """Store a message together with the start of its run; the start is sent after the commit.

        Raises:
            ConversationNotFoundError: not the user's.
            TurnRunningError: a turn is being worked on.
        """
        conversation = await repository.owned(session, conversation_id, user.uid, lock=True)
        if conversation.status in BUSY:
            raise TurnRunningError
        if conversation.last_message + 2 > self._max_messages:
            raise TooManyMessagesError(limit=self._max_messages)
        await leave_undecided(session, conversation)
        conversation.view_context = carried_over(conversation.view_context, body.view_context)
        message = self._add_message(session, conversation, str(storable(body.content)))
        await session.flush()
        history = await repository.newest_messages(session, conversation.id, MAX_MESSAGES)
        entries = await segments.entries(session, conversation.id)
        transcript = build_transcript(history, entries, context=prompt_text(conversation.view_context, titles))
        start = run_start(conversation, transcript, user.locale)
        session.add(
            RunStartRow(
                message_id=message.id,
                conversation_id=conversation.id,
                user_uid=user.uid,
                body=start.model_dump(mode="json"),
                state="pending",
                attempts=0,
                next_attempt=utc_now(),
                created_at=utc_now(),
            )
        )
        conversation.status = STARTING
        conversation.error_code = None
        append_event(session, conversation, MESSAGE, {"id": str(message.id), "sequence": message.sequence})
        append_event(session, conversation, STATUS, {"status": STARTING})
        self._wakeup.after_commit(session, conversation.id)
        return MessageAccepted(message=message_view(message), status=STARTING)

    def _add_message(self, session: WriteSession, conversation: ConversationRow, content: str) -> MessageRow:
        now = utc_now()
        conversation.last_message += 1
        conversation.updated_at = now
        if not conversation.title:
            conversation.title = clean_title(content, TITLE_LENGTH)
        message = MessageRow(
            id=uuid7(),
            conversation_id=conversation.id,
            sequence=conversation.last_message,
            role="user",
            content=content,
            nothing_saved=False,
            created_at=now,
        )
        session.add(message)
        return message

    async def rename(
        self, session: WriteSession, user: CurrentUser, conversation_id: UUID, title: str
    ) -> ConversationView:
        """Give a conversation another title."""
        conversation = await repository.owned(session, conversation_id, user.uid, lock=True)
        conversation.title = clean_title(title)
        await session.flush()
        return conversation_view(conversation)

    async def remove(self, session: WriteSession, user: CurrentUser, conversation_id: UUID) -> None:
        """Remove a conversation with its messages, records and lists; what was written to the site stays.

        Raises:
            TurnRunningError: a turn is being worked on.
        """
        conversation = await repository.owned(session, conversation_id, user.uid, lock=True)
        if conversation.status in BUSY:
            raise TurnRunningError
        await repository.remove(session, conversation)

    async def status(self, session: ReadSession, user: CurrentUser, conversation_id: UUID) -> tuple[str, str | None]:
        """Status and error code of a conversation now."""
        conversation = await repository.owned(session, conversation_id, user.uid)
        return conversation.status, conversation.error_code


async def leave_undecided(session: WriteSession, conversation: ConversationRow) -> None:
    """A card or question that waits is left undecided by a new message (R-006, T-40); its run stays as it is."""
    if conversation.current_run is None or conversation.status not in _WAITING:
        return
    question = conversation.status == RunStatus.WAITING_FOR_INPUT.value
    await segments.amend_last_entry(
        session, conversation, conversation.current_run, {"undecided": "question" if question else "card"}
    )
    run = await session.get(RunRow, conversation.current_run)
    if run is not None:
        run.abandoned = True
    conversation.pending = None


def run_start(conversation: ConversationRow, transcript: list[ChatMessage], locale: str) -> RunStart:
    """The request that starts a run: the actor carries workspace and scope (S-11)."""
    scope = (
        AssignmentScope.model_validate(conversation.assignment_scope)
        if conversation.assignment_scope is not None
        else None
    )
    actor = ActorRequest(
        user_uid=conversation.owner_uid,
        workspace_id=conversation.workspace_id,
        locale=locale,
        assignment_scope=scope,
    )
    return RunStart(
        actor=actor, configuration=conversation.configuration, messages=transcript, conversation_id=conversation.id
    )


def clean_title(text: str, limit: int = 200) -> str:
    """A title in one line; a longer text is cut."""
    line = " ".join(str(storable(text)).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def configuration_names(answer: Any) -> set[str] | None:
    """Names in the runtime's answer; none where its form is not known, so that the start decides."""
    items = answer.get("configurations") if isinstance(answer, Mapping) else answer
    if not isinstance(items, list):
        return None
    return {item["name"] for item in items if isinstance(item, Mapping) and isinstance(item.get("name"), str)}


def conversation_view(row: ConversationRow) -> ConversationView:
    """The conversation as its owner sees it."""
    scope = AssignmentScope.model_validate(row.assignment_scope) if row.assignment_scope is not None else None
    return ConversationView(
        id=row.id,
        title=row.title,
        configuration=row.configuration,
        status=row.status,
        workspace_id=row.workspace_id,
        assignment_scope=scope,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def message_view(row: MessageRow) -> MessageView:
    """The message as its reader sees it."""
    return MessageView(
        id=row.id,
        sequence=row.sequence,
        role="assistant" if row.role == "assistant" else "user",
        content=row.content,
        created_at=row.created_at,
        run=row.run_id,
        nothing_saved=row.nothing_saved,
    )
