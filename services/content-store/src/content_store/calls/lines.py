"""The lines a card shows and a commit is compared with: new records by path, never by uid (CALLS 4). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from remit_contracts.calls import ShownChange
from remit_contracts.changes import ChangeAction

from content_store.calls.collector import Observation, StoredFacts
from content_store.scope.child_relations import RecordKey
from content_store.scope.places import PAGES

# A new record nothing names: told apart only by what else is on its line, and counted.
UNNAMED: Final = "new"


class RecordPaths:
    """Names records so that a rehearsal and its execution call them the same, whatever uids sequences gave.

    Args:
        placeholders: placeholder -> table and uid of what the call created.
        copies: copies and translations: table and uid of the copy -> uid of its source.
        created: new rows of the call.
    """

    def __init__(
        self,
        placeholders: Mapping[str, RecordKey],
        copies: Mapping[RecordKey, int],
        created: frozenset[RecordKey],
    ) -> None:
        self._names = {key: name for name, key in placeholders.items()}
        self._copies = copies
        self._created = created

    def of(self, table: str, uid: int) -> str:
        """The uid as text for what was there before; a path for what is new."""
        key = (table, uid)
        if key in self._names:
            return self._names[key]
        if key not in self._created:
            return str(uid)
        source = self._copies.get(key)
        return f"copy:{self.of(table, source)}" if source is not None and source != uid else UNNAMED


def shown_changes(
    observations: Sequence[Observation],
    facts: Mapping[RecordKey, StoredFacts],
    placeholders: Mapping[str, RecordKey],
    copies: Mapping[RecordKey, int],
) -> list[ShownChange]:
    """One line per changed record; all of them, whatever the limit of the change list."""
    created = frozenset(o.key for o in observations if o.action is ChangeAction.CREATED)
    paths = RecordPaths(placeholders, copies, created)
    lines = []
    for observation in observations:
        known = facts.get(observation.key)
        if known is None:
            continue
        # A version is known by its live record: its own uid comes from a sequence.
        uid = known.live_uid or observation.uid
        lines.append(
            ShownChange(
                table=observation.table,
                action=observation.action.value,
                record=paths.of(observation.table, uid),
                pid=paths.of(PAGES, known.pid),
                language=known.language,
                workspace_id=known.workspace,
            )
        )
    return lines
