"""ConversationChangeReader: the change list of a conversation for one viewer, decided at read time (R-070, R-090, R-096)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from uuid import UUID

from remit_contracts.conversations import ChangeList
from service_kit.client import RemoteError
from service_kit.database import Database
from service_kit.texts import Texts

from chat_gateway.access.current_user import CurrentUser
from chat_gateway.access.errors import VisibilityUnavailableError
from chat_gateway.access.visibility import VisibilityFilter
from chat_gateway.changes.merge import merge_observations
from chat_gateway.changes.observations import Observed, observe_entries, observe_run
from chat_gateway.changes.presenter import ConversationFacts, asked_of, asked_of_refused, present
from chat_gateway.changes.repository import list_source
from chat_gateway.clients.ports import StorePort
from chat_gateway.conversations.errors import CursorInvalidError
from chat_gateway.conversations.models import BUSY
from chat_gateway.conversations.repository import owned


class ConversationChangeReader:
    """Reads change lists.

    Args:
        database: the projection.
        visibility: the permission filter.
        store: knows the tables a viewer may select.
        texts: catalogues.
        max_rows: of a list, after the filter.
    """

    def __init__(
        self, database: Database, visibility: VisibilityFilter, store: StorePort, texts: Texts, max_rows: int
    ) -> None:
        self._database = database
        self._visibility = visibility
        self._store = store
        self._texts = texts
        self._max_rows = max_rows

    async def read(self, viewer: CurrentUser, conversation_id: UUID) -> ChangeList:
        """The list, with nothing in it the viewer may not see.

        Raises:
            ConversationNotFoundError: not the viewer's conversation.
            VisibilityUnavailableError: it cannot be checked what the viewer may see (R-095).
        """
        async with self._database.read() as session:
            conversation = await owned(session, conversation_id, viewer.uid)
            source = await list_source(session, conversation_id)
        observed = observe_entries(source.entries)
        for run in source.runs:
            observed += observe_run(run.run, run.position, run.steps)
        rows = merge_observations(observed.rows)
        asked = [asked_of(row) for row in rows.values()]
        asked.extend(item for refusal in observed.refused if (item := asked_of_refused(refusal)) is not None)
        workspaces = {row.facts.workspace_id for row in rows.values() if row.facts is not None}
        visible = await self._visibility.see(viewer.uid, asked, conversation.workspace_id, workspaces)
        facts = ConversationFacts(
            conversation_id=conversation_id,
            changes_revision=conversation.changes_revision,
            running=conversation.status in BUSY,
            unreadable_runs=source.unreadable,
        )

        def words(text: str) -> str:
            return self._texts.text(text, viewer.locale)

        tables = await self._tables(viewer, observed)
        return present(rows, observed, visible, tables, facts, words, self._max_rows)

    async def _tables(self, viewer: CurrentUser, observed: Observed) -> Mapping[str, str]:
        """Tables the viewer may select; asked only where a refused new record has none of its own to check."""
        if all(refusal.uid is not None for refusal in observed.refused):
            return {}
        try:
            return await self._store.readable_tables(viewer.uid)
        except RemoteError as error:
            raise VisibilityUnavailableError from error


def page_of(changes: ChangeList, cursor: str | None, limit: int) -> ChangeList:
    """A part of the list; the cursor is the key of the last row that was read.

    Raises:
        CursorInvalidError: no cursor of this list.
    """
    start = 0
    if cursor is not None:
        key = decode_cursor(cursor)
        start = next((index + 1 for index, row in enumerate(changes.rows) if row.key == key), -1)
        if start < 0:
            raise CursorInvalidError
    rows = changes.rows[start : start + limit]
    more = start + limit < len(changes.rows)
    return changes.model_copy(update={"rows": rows, "next_cursor": encode_cursor(rows[-1].key) if more else None})


def encode_cursor(text: str) -> str:
    """A cursor: opaque to clients."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    """The text of a cursor.

    Raises:
        CursorInvalidError: not one of ours.
    """
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise CursorInvalidError from error
