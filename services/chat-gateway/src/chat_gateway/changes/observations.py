"""Reads the steps of runs as observations of records (R-070 to R-078). Nothing here raises on what a step holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from remit_contracts.changes import Coverage, ObservedChangeSet, RecordChange, RefusedWrite
from remit_contracts.conversations import RunRecordEntry
from remit_contracts.records import IDENTIFIER_REFERENCE
from remit_contracts.steps import Step, StepKind, WriteCompleteness

from chat_gateway.changes.merge import CallMark, MergedRow, Order, StoredFacts
from chat_gateway.segments.payloads import WriteFacts, change_facts, step_call_id, tool_facts, write_facts

UNREADABLE_STEP = "unreadable"


@dataclass
class _Call:
    """The steps of one call, gathered by call id, else by place (R-076)."""

    run: UUID
    call_id: str | None
    tool: str | None = None
    failed: bool = False
    correlated: bool = True
    writes: list[WriteFacts] = field(default_factory=list)
    changes: list[tuple[Step, ObservedChangeSet]] = field(default_factory=list)
    last: Step | None = None

    @property
    def hook_failed(self) -> bool:
        return any(write.hook_failed for write in self.writes)


@dataclass(frozen=True)
class Observed:
    """What the steps of a conversation's runs say.

    Attributes:
        rows: observations in order.
        omitted: changes the store left out, summed.
        not_captured: calls whose list does not cover them, and steps that cannot be read.
        legacy_runs: runs read through the records their tools named.
        refused: refused writes in order.
        undone_calls: calls that were rolled back because of one.
    """

    rows: tuple[MergedRow, ...] = ()
    omitted: int = 0
    not_captured: int = 0
    legacy_runs: int = 0
    refused: tuple[RefusedWrite, ...] = ()
    undone_calls: int = 0

    def __add__(self, other: Observed) -> Observed:
        return Observed(
            self.rows + other.rows,
            self.omitted + other.omitted,
            self.not_captured + other.not_captured,
            self.legacy_runs + other.legacy_runs,
            self.refused + other.refused,
            self.undone_calls + other.undone_calls,
        )


def observe_run(run: UUID, position: int, steps: Sequence[Step]) -> Observed:
    """Observations of one run.

    Args:
        run: its id.
        position: its place among the runs of the conversation, oldest first.
        steps: its stored steps in order of sequence.
    """
    calls = _calls(run, steps)
    unreadable = sum(1 for step in steps if step.kind == UNREADABLE_STEP)
    if not any(step.kind == StepKind.TOOL_CHANGES for step in steps):
        rows = tuple(row for call in calls for row in _legacy_rows(call, position))
        return Observed(rows, not_captured=unreadable, legacy_runs=1 if rows else 0)
    observed = Observed(not_captured=unreadable)
    for call in calls:
        observed += _observe_call(call, position)
    return observed


def observe_entries(entries: Iterable[RunRecordEntry]) -> Observed:
    """Rows of entries from before runs were named: the writes they list (R-078)."""
    rows: list[MergedRow] = []
    for entry in entries:
        if entry.run is not None:
            continue
        for write in entry.writes:
            match = IDENTIFIER_REFERENCE.match(write.record)
            if match is not None:
                rows.append(
                    MergedRow(
                        key=(match["table"], int(match["uid"])),
                        order=(-1, len(rows)),
                        target=True,
                        partial=write.completeness == WriteCompleteness.PARTIAL,
                    )
                )
    return Observed(tuple(rows), legacy_runs=1 if rows else 0)


def _calls(run: UUID, steps: Iterable[Step]) -> list[_Call]:
    calls: list[_Call] = []
    by_id: dict[str, _Call] = {}
    nearest: _Call | None = None
    nearest_round: int | None = None
    for step in steps:
        if step.kind not in {StepKind.TOOL, StepKind.TOOL_WRITE, StepKind.TOOL_CHANGES}:
            continue
        call_id = step_call_id(step)
        call = by_id.get(call_id) if call_id is not None else None
        if call is None and call_id is None and step.kind != StepKind.TOOL:
            call = nearest if nearest_round == step.round else None
        if call is None:
            call = _Call(run, call_id, correlated=call_id is not None or step.kind == StepKind.TOOL)
            calls.append(call)
            if call_id is not None:
                by_id[call_id] = call
        if step.kind == StepKind.TOOL:
            nearest, nearest_round = call, step.round
        _take(call, step)
    return calls


def _take(call: _Call, step: Step) -> None:
    call.last = step
    if (tool := tool_facts(step)) is not None:
        call.tool = tool.name
        call.failed = call.failed or tool.is_error
    if (write := write_facts(step)) is not None:
        call.writes.append(write)
    if (changes := change_facts(step)) is not None:
        call.changes.append((step, changes))


def _observe_call(call: _Call, position: int) -> Observed:
    rows: list[MergedRow] = []
    omitted = not_captured = 0
    refused: list[RefusedWrite] = []
    for step, changes in call.changes:
        rows.extend(_observed_row(call, change, (position, step.sequence), step) for change in changes.changes)
        omitted += changes.changes_omitted
        refused.extend(changes.refused)
        # Changes that belong to no known call carry no failure marker; the list says it is not sure of them.
        not_captured += 1 if changes.coverage is Coverage.NOT_CAPTURED or not call.correlated else 0
    undone = 1 if any(item.undone for item in refused) else 0
    return Observed(tuple(rows), omitted, not_captured, 0, tuple(refused), undone)


def _observed_row(call: _Call, change: RecordChange, order: Order, step: Step) -> MergedRow:
    named = [
        write for write in call.writes if write.table == change.table and write.uid in {change.uid, change.live_uid}
    ]
    return MergedRow(
        key=(change.table, change.live_uid or change.uid),
        order=order,
        action=change.action,
        facts=StoredFacts(
            uid=change.uid,
            workspace_id=change.workspace_id,
            live_uid=change.live_uid,
            language=change.language,
            hidden=change.hidden,
            starttime=change.starttime,
            endtime=change.endtime,
            fe_group=change.fe_group,
        ),
        target=change.write_target,
        failed=call.failed or call.hook_failed,
        partial=any(write.completeness == WriteCompleteness.PARTIAL for write in named),
        relation=change.relation,
        calls=(CallMark(call.run, call.call_id, call.tool, step.at),),
        runs=(call.run,),
    )


def _legacy_rows(call: _Call, position: int) -> list[MergedRow]:
    return [
        MergedRow(
            key=(write.table, write.uid),
            order=(position, call.last.sequence if call.last is not None else 0),
            target=True,
            failed=call.failed or write.hook_failed,
            partial=write.completeness == WriteCompleteness.PARTIAL,
            calls=(CallMark(call.run, call.call_id, call.tool, call.last.at if call.last is not None else None),),
            runs=(call.run,),
        )
        for write in call.writes
    ]
