"""Committed record changes as events on ``remit.records.v1``, written in the transaction that made them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from remit_contracts.changes import ChangeAction
from remit_contracts.events import RECORD_CHANGED_TYPE, RECORDS_TOPIC, EventActor, RecordChanged
from service_kit.clock import utc_now
from service_kit.outbox import Outbox, OutboxEvent

from content_store.calls.merging import observed_action
from content_store.capture.model import Identity, RowDelta
from content_store.capture.relations import RelationEnds

SOURCE: Final = "/content-store"
UNKNOWN_ACTOR: Final = EventActor(kind="unknown")


@dataclass(frozen=True)
class Origin:
    """Who changed the records.

    Attributes:
        actor: the user, or unknown.
        run_id: of an agent's run.
        call_id: of its call.
        at: when.
    """

    actor: EventActor = UNKNOWN_ACTOR
    run_id: UUID | None = None
    call_id: UUID | None = None
    at: datetime = field(default_factory=utc_now)

    @classmethod
    def of_user(cls, user_uid: int, run_id: UUID | None = None, call_id: UUID | None = None) -> Origin:
        """A user by hand, or an agent's call on the user's behalf."""
        return cls(EventActor(kind="user", user_uid=user_uid), run_id, call_id)


def record_changes(
    deltas: Iterable[RowDelta],
    ends: Mapping[str, RelationEnds],
    origin: Origin,
    actions: Mapping[tuple[str, int], ChangeAction] | None = None,
) -> list[RecordChanged]:
    """One change per record, in the order they were first touched (pure).

    Args:
        deltas: of the transaction.
        ends: which records the rows of MM tables connect.
        origin: who and when.
        actions: what the DataHandler knows better: a move within a page looks like a renumbering to the database.
    """
    known = actions or {}
    changes: dict[tuple[str, int], RecordChanged] = {}
    related: list[tuple[str, int]] = []
    for delta in deltas:
        if delta.relation is not None:
            if not delta.is_renumbering and delta.table in ends:
                related += ends[delta.table].of(delta.relation)
            continue
        key = (delta.table, delta.uid)
        action = None if delta.is_passing else known.get(key) or observed_action(delta)
        place = delta.after or delta.before
        if action is not None and place is not None:
            changes[key] = _change(key, action, place, origin)
    for key in related:
        if key not in changes:
            changes[key] = RecordChanged(
                table=key[0], uid=key[1], action=ChangeAction.UPDATED, relation=True, **_origin(origin)
            )
    return list(changes.values())


def record_events(changes: Iterable[RecordChanged]) -> list[OutboxEvent]:
    """The changes as outbox events: stream and key are ``table:uid``."""
    return [
        OutboxEvent(
            topic=RECORDS_TOPIC,
            stream=f"{change.table}:{change.uid}",
            type=RECORD_CHANGED_TYPE,
            source=SOURCE,
            data=change,
            subject=f"{change.table}:{change.uid}",
            time=change.at,
        )
        for change in changes
    ]


async def append_record_events(connection: Any, outbox: Outbox, changes: Iterable[RecordChanged]) -> int:
    """Add the changes to the outbox of an asyncpg transaction, as its last statement; returns how many.

    Raises:
        EventTooLargeError: never in practice, the events carry no values.
    """
    return len(await outbox.append_raw(connection, record_events(changes)))


def _change(key: tuple[str, int], action: ChangeAction, place: Identity, origin: Origin) -> RecordChanged:
    return RecordChanged(
        table=key[0],
        uid=key[1],
        action=action,
        pid=place.pid,
        language=place.language,
        workspace_id=place.workspace,
        live_uid=place.live_uid or None,
        **_origin(origin),
    )


def _origin(origin: Origin) -> dict[str, Any]:
    return {"actor": origin.actor, "run_id": origin.run_id, "call_id": origin.call_id, "at": origin.at}
