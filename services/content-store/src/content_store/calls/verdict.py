"""The verdict of a call: what the database saw, judged and listed, before anything is committed (CALLS 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg
from remit_contracts.calls import RollbackReason, ShownChange
from remit_contracts.changes import ChangeAction, ObservedChangeSet, RefusedWrite
from remit_contracts.records import WriteTarget

from content_store.calls.collector import ToolChangeCollector, without_changes
from content_store.calls.environment import StoreEnvironment
from content_store.calls.errors import CallRolledBack
from content_store.calls.lines import shown_changes
from content_store.calls.readback import read_facts
from content_store.calls.shown import exceeded
from content_store.calls.witness import ChangeWitness
from content_store.capture.errors import CaptureError
from content_store.capture.grouping import group_rows
from content_store.capture.model import CapturedRow, RowDelta
from content_store.capture.reader import take_capture
from content_store.records.errors import CALL_ENDING_SQLSTATES, CallMustEnd
from content_store.records.gateway import RecordGateway
from content_store.records.lost import LOST
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.child_relations import RecordKey
from content_store.scope.effect import EFFECT, AssignmentScopeEffect, NotJudgeable
from content_store.scope.guard import AssignmentScopeGuard
from content_store.scope.topology import PageTopology


@dataclass(frozen=True)
class Verdict:
    """What is said of a call.

    Attributes:
        judged: captured rows it covers.
        deltas: what became of each row.
        changes: the list, with everything refused.
        lines: what a card shows of it.
        actions: what happened to each record.
        reason: why the call has to be undone; None when it may be committed.
        exceeded: lines beyond those the card showed.
    """

    judged: int
    deltas: Sequence[RowDelta]
    changes: ObservedChangeSet
    lines: Sequence[ShownChange]
    actions: Mapping[RecordKey, ChangeAction]
    reason: RollbackReason | None = None
    exceeded: tuple[ShownChange, ...] = ()

    @property
    def reported(self) -> ObservedChangeSet:
        """The list as it is told: nothing is named as changed when the call is undone (S-74)."""
        return self.changes if self.reason is None else without_changes(self.changes, self.changes.refused)


@dataclass(frozen=True)
class Judged:
    """Whom and what a verdict is about.

    Attributes:
        call_id: None in a rehearsal.
        checker: the scope; None where there is none.
        shown: what the card showed; None without one.
        target: the record the tool named.
        workspace: of the run.
    """

    call_id: UUID | None
    checker: AssignmentScopeChecker | None
    shown: Sequence[ShownChange] | None
    target: WriteTarget | None
    workspace: int


async def judge(
    env: StoreEnvironment,
    gateway: RecordGateway,
    about: Judged,
    witness: ChangeWitness,
    guard: AssignmentScopeGuard,
    placeholders: Mapping[str, RecordKey],
    copies: Mapping[RecordKey, int],
) -> Verdict:
    """Take what was captured, judge it against the scope and the card, and list it.

    Raises:
        CallRolledBack: the transaction is not the call's any more.
        CallMustEnd: the database ended more than a statement.
    """
    rows = await _captured(gateway, about.call_id) if witness.ran else []
    deltas = group_rows(rows)
    reason, violations = await _violations(env, gateway, about, witness, deltas)
    collector = ToolChangeCollector(witness, env.relation_ends, env.limits.max_history, env.limits.max_changes)
    observations = collector.observe(deltas)
    facts = await read_facts(gateway, observations)
    lines = shown_changes(observations, facts, placeholders, copies)
    more = exceeded(about.shown, lines) if about.shown is not None else ()
    if reason is None and more:
        reason = RollbackReason.MORE_THAN_SHOWN
    changes = collector.change_set(
        observations,
        facts,
        resolved_target(about.target, placeholders, copies),
        named_target=about.target is not None,
        refused=(*guard.refused, *violations),
    )
    actions = {o.key: o.action for o in observations if not o.relation}
    return Verdict(len(rows), deltas, changes, lines, actions, reason, more)


async def _captured(gateway: RecordGateway, call_id: UUID | None) -> list[CapturedRow]:
    try:
        return await take_capture(gateway.connection, call_id)
    except LOST:
        raise
    except CaptureError as error:
        raise CallRolledBack(RollbackReason.COMMIT_REFUSED, "transaction_lost") from error
    except asyncpg.PostgresError as error:
        sqlstate = str(getattr(error, "sqlstate", "") or "")
        if sqlstate in CALL_ENDING_SQLSTATES:
            raise CallMustEnd(sqlstate, str(error)) from error
        # A hook hid that the transaction had failed.
        raise CallRolledBack(RollbackReason.COMMIT_REFUSED, "transaction_lost") from error


async def _violations(
    env: StoreEnvironment,
    gateway: RecordGateway,
    about: Judged,
    witness: ChangeWitness,
    deltas: Sequence[RowDelta],
) -> tuple[RollbackReason | None, list[RefusedWrite]]:
    if about.checker is None or not env.effect_check or not deltas:
        return None, []
    # Fresh: what a hook did behind the handler's back is in no cache.
    effect = AssignmentScopeEffect(
        about.checker,
        PageTopology(gateway, about.workspace),
        env.relation_ends,
        env.limits.max_rows,
        env.limits.max_history,
    )
    try:
        found = await effect.violations(deltas, witness.named, witness.history_rows)
    except NotJudgeable as error:
        refused = RefusedWrite(operation=EFFECT, table="", reason=error.reason, undone=True)
        return RollbackReason.NOT_JUDGEABLE, [refused]
    return (RollbackReason.VIOLATION if found else None), found


def resolved_target(
    target: WriteTarget | None, placeholders: Mapping[str, RecordKey], copies: Mapping[RecordKey, int]
) -> RecordKey | None:
    """The record a tool named; None for a placeholder, copy or translation of a record that was not created.

    Args:
        target: as named.
        placeholders: placeholder -> table and uid.
        copies: table and uid of copies and translations -> uid of their source, oldest first.
    """
    if target is None:
        return None
    known = placeholders.get(target.uid) if isinstance(target.uid, str) else (target.table, target.uid)
    if known is None or known[0] != target.table:
        return None
    if not target.copied:
        return known
    made = [key for key, source in copies.items() if (key[0], source) == known]
    return made[-1] if made else None
