"""The change list of a call, joined from three witnesses (C-03 to C-10, C-16 to C-21)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from remit_contracts.changes import (
    MAX_CHANGES,
    ChangeAction,
    Coverage,
    ObservedChangeSet,
    RecordChange,
    RefusedWrite,
    Witness,
)

from content_store.calls.merging import agree, merge_all
from content_store.calls.witness import ChangeWitness, Report
from content_store.capture.model import RowDelta
from content_store.capture.relations import RelationEnds
from content_store.scope.child_relations import RecordKey


@dataclass(frozen=True, slots=True)
class Observation:
    """One changed record before it is read back.

    Attributes:
        live_uid: the live row this is a version of, 0 for none.
        exists: the row is still in its table.
        delta: what the database saw; None for an update that wrote no column.
    """

    table: str
    uid: int
    action: ChangeAction
    live_uid: int = 0
    exists: bool = True
    relation: bool = False
    delta: RowDelta | None = None

    @property
    def key(self) -> RecordKey:
        """Table and uid of the stored row."""
        return self.table, self.uid


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """What the row itself says (C-05): read back after the last write, or its last identity where it is gone."""

    pid: int
    workspace: int = 0
    live_uid: int = 0
    language: int | None = None
    hidden: bool | None = None
    starttime: int | None = None
    endtime: int | None = None
    fe_group: str | None = None


class ToolChangeCollector:
    """Joins hooks, history and the database's own record of one call.

    Args:
        witness: what the DataHandlers of the call reported.
        ends: which tables each MM table connects.
        max_history: a chain of more rows is cut (C-07).
        max_changes: entries listed at most (C-07).
    """

    def __init__(
        self,
        witness: ChangeWitness,
        ends: Mapping[str, RelationEnds],
        max_history: int = 5000,
        max_changes: int = MAX_CHANGES,
    ) -> None:
        self._witness = witness
        self._ends = ends
        self._max_history = max_history
        self._max_changes = max_changes

    def observe(self, deltas: Sequence[RowDelta]) -> list[Observation]:
        """Every changed record once: in the order the DataHandlers reported them, then what only the database saw.

        A report that the database knows nothing of was undone with its savepoint (S-57) or never happened (C-21);
        only an update that wrote no column is listed without it (C-16).
        """
        by_key = {(d.table, d.uid): d for d in deltas if not d.is_relation}
        versions = {(d.table, d.after.live_uid): d.uid for d in by_key.values() if d.after and d.after.live_uid}
        reported = self._reported(by_key, versions)
        found: dict[RecordKey, Observation] = {}
        for key, reports in reported.items():
            observation = self._observation(key, reports, by_key.get(key))
            if observation is not None:
                found[key] = observation
        for key, delta in by_key.items():
            if key not in reported and (observation := self._observation(key, [], delta)) is not None:
                found[key] = observation
        for observation in self._relations(deltas, by_key):
            found.setdefault(observation.key, observation)
        return list(found.values())

    def _reported(
        self, by_key: Mapping[RecordKey, RowDelta], versions: Mapping[RecordKey, int]
    ) -> dict[RecordKey, list[Report]]:
        reported: dict[RecordKey, list[Report]] = {}
        for report in self._witness.reports:
            key = report.key
            if key not in by_key and key in versions:
                # Named by its live uid, written as a version.
                key = (report.table, versions[key])
            reported.setdefault(key, []).append(report)
        return reported

    @staticmethod
    def _observation(key: RecordKey, reports: Sequence[Report], delta: RowDelta | None) -> Observation | None:
        if delta is None:
            only_updated = all(r.action is ChangeAction.UPDATED and not r.wrote for r in reports)
            return Observation(*key, ChangeAction.UPDATED) if reports and only_updated else None
        hooks = merge_all(r.action for r in reports if r.witness is Witness.HOOKS)
        history = merge_all(r.action for r in reports if r.witness is Witness.HISTORY)
        action = agree(hooks or history, delta)
        if action is None:
            return None
        identity = delta.after or delta.before
        live_uid = identity.live_uid if identity is not None else 0
        return Observation(*key, action, live_uid, delta.after is not None, delta=delta)

    def _relations(self, deltas: Iterable[RowDelta], by_key: Mapping[RecordKey, RowDelta]) -> Iterable[Observation]:
        """Both ends of an MM row that came or went are updated (C-05)."""
        for delta in deltas:
            ends = self._ends.get(delta.table)
            if delta.relation is None or delta.relation_change == 0 or ends is None:
                continue
            for table, uid in ends.of(delta.relation):
                known = by_key.get((table, uid))
                gone = known is not None and known.after is None
                if not gone:
                    yield Observation(table, uid, ChangeAction.UPDATED, relation=True)

    def change_set(
        self,
        observations: Sequence[Observation],
        facts: Mapping[RecordKey, StoredFacts],
        target: RecordKey | None,
        *,
        named_target: bool,
        refused: tuple[RefusedWrite, ...] = (),
    ) -> ObservedChangeSet:
        """The list: at most 50 entries, the tool's own target among them, the rest counted (C-07).

        Args:
            observations: of :meth:`observe`.
            facts: of each row, by table and uid; a row without any is not there and is left out.
            target: the record the tool named, where it is known by now.
            named_target: the tool named one at all.
            refused: what the scope stopped.
        """
        listed = [
            record_change(o, facts[o.key], write_target=target is not None and self._is_target(o, target))
            for o in observations
            if o.key in facts
        ]
        kept = listed[: self._max_changes]
        if len(listed) > self._max_changes and not any(change.write_target for change in kept):
            own = next((change for change in listed if change.write_target), None)
            kept = [*kept[:-1], own] if own is not None else kept
        cut = 1 if self._witness.history_rows > self._max_history else 0
        return ObservedChangeSet(
            changes=tuple(kept),
            changes_omitted=len(listed) - len(kept) + cut,
            coverage=self._coverage(target, named_target=named_target),
            witnesses=self._witnesses(),
            refused=refused,
        )

    @staticmethod
    def _is_target(observation: Observation, target: RecordKey) -> bool:
        return observation.table == target[0] and target[1] in (observation.uid, observation.live_uid)

    def _coverage(self, target: RecordKey | None, *, named_target: bool) -> Coverage:
        """Never complete; a target no DataHandler reported is not captured even when the database saw it (C-10)."""
        reported = target is not None and any(report.key == target for report in self._witness.reports)
        return Coverage.DATAHANDLER if reported or not named_target else Coverage.NOT_CAPTURED

    def _witnesses(self) -> tuple[str, ...]:
        if not self._witness.ran:
            return ()
        return (Witness.HOOKS.value, Witness.HISTORY.value, Witness.DATABASE.value)


def record_change(observation: Observation, facts: StoredFacts, *, write_target: bool) -> RecordChange:
    """One entry: identity and stored facts, never a title or a value (C-08)."""
    return RecordChange(
        table=observation.table,
        uid=observation.uid,
        action=observation.action,
        workspace_id=facts.workspace,
        live_uid=facts.live_uid or None,
        language=facts.language,
        write_target=write_target,
        hidden=facts.hidden,
        starttime=facts.starttime,
        endtime=facts.endtime,
        fe_group=facts.fe_group,
        relation=observation.relation,
    )


def last_identity(observation: Observation) -> StoredFacts | None:
    """Facts of a row that is gone: its last identity."""
    identity = observation.delta.before if observation.delta is not None else None
    if identity is None:
        return None
    return StoredFacts(identity.pid, identity.workspace, identity.live_uid, identity.language)


def without_changes(changes: ObservedChangeSet, refused: tuple[RefusedWrite, ...]) -> ObservedChangeSet:
    """The list of a call that was rolled back: nothing is named as changed (S-74)."""
    return changes.model_copy(update={"changes": (), "changes_omitted": 0, "refused": refused})
