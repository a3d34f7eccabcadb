"""The permission filter: what one viewer may see of a set of records, asked of the store at read time (R-090 to R-095)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError
from remit_contracts.visibility import MAX_VISIBILITY, RecordKey, VisibilityRequest, VisibleRecord
from service_kit.client import RemoteError
from service_kit.logging import get_logger

from chat_gateway.access.errors import VisibilityUnavailableError
from chat_gateway.clients.ports import StorePort

logger = get_logger(__name__)


@dataclass(frozen=True)
class Asked:
    """A record to ask about: the stored row, and its live row where it is a version (A-05)."""

    table: str
    uid: int
    live_uid: int | None = None


@dataclass(frozen=True)
class Visible:
    """What the viewer may see."""

    records: Mapping[tuple[str, int], VisibleRecord] = field(default_factory=dict)
    workspace_titles: Mapping[int, str | None] = field(default_factory=dict)

    def record(self, asked: Asked) -> VisibleRecord | None:
        """The record, by its stored row, else by its live row."""
        found = self.records.get((asked.table, asked.uid))
        return found or (self.records.get((asked.table, asked.live_uid)) if asked.live_uid is not None else None)


class VisibilityFilter:
    """Asks in batches; an answer is never kept for another request or another viewer.

    Args:
        store: answers.
        batch: records asked for at once, at most 500.
    """

    def __init__(self, store: StorePort, batch: int = MAX_VISIBILITY) -> None:
        self._store = store
        self._batch = min(batch, MAX_VISIBILITY)

    async def see(
        self, viewer_uid: int, asked: Iterable[Asked], workspace_id: int, workspace_ids: Iterable[int] = ()
    ) -> Visible:
        """Ask about every record once.

        Args:
            viewer_uid: who looks.
            asked: any number of records; what is no valid name of a record is withheld without asking.
            workspace_id: the viewer works in.
            workspace_ids: whose titles are wanted.

        Raises:
            VisibilityUnavailableError: the store did not answer: nothing may be shown.
        """
        keys = _keys(asked)
        wanted = sorted(set(workspace_ids))
        records: dict[tuple[str, int], VisibleRecord] = {}
        titles: dict[int, str | None] = {}
        for start in range(0, len(keys), self._batch):
            batch = keys[start : start + self._batch]
            request = VisibilityRequest(
                records=batch, workspace_ids=wanted if start == 0 else [], workspace_id=workspace_id
            )
            try:
                answer = await self._store.visibility(viewer_uid, request)
            except (RemoteError, ValidationError) as error:
                logger.warning("visibility not known", error=type(error).__name__)
                raise VisibilityUnavailableError from error
            allowed = {(key.table, uid) for key in batch for uid in (key.uid, key.live_uid) if uid is not None}
            for record in answer.records:
                # Only what was asked for counts, whatever the answer holds beside it.
                if (record.table, record.uid) in allowed:
                    records[(record.table, record.uid)] = record
            titles.update(answer.workspace_titles)
        return Visible(records, titles)


def _keys(asked: Iterable[Asked]) -> list[RecordKey]:
    keys: dict[tuple[str, int], RecordKey] = {}
    for item in asked:
        try:
            keys.setdefault((item.table, item.uid), RecordKey(table=item.table, uid=item.uid, live_uid=item.live_uid))
        except ValidationError:
            continue
    return list(keys.values())
