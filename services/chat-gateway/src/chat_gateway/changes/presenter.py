"""Words and numbers of the change list from what is known and what the viewer may see (R-081, R-082, R-100 to R-103). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from remit_contracts.changes import ChangeAction, RefusedWrite
from remit_contracts.conversations import (
    ChangeCounts,
    ChangeList,
    ChangeNote,
    ChangeRow,
    ChangeRowCall,
    ChangeRowRestrictions,
    ChangeRowTitle,
    RefusedRow,
)
from remit_contracts.visibility import RecordLinks, VisibleRecord

from chat_gateway.access.visibility import Asked, Visible
from chat_gateway.changes import texts
from chat_gateway.changes.merge import MergedRow, RowKey, StoredFacts
from chat_gateway.changes.observations import Observed

MAX_ROWS = 100
Words = Callable[[str], str]
"""A text in the reader's language."""


@dataclass(frozen=True)
class ConversationFacts:
    """What the list says beside its rows."""

    conversation_id: UUID
    changes_revision: int
    running: bool
    unreadable_runs: int


def asked_of(row: MergedRow) -> Asked:
    """The record a row stands for, as the filter asks for it."""
    if row.facts is not None:
        return Asked(row.key[0], row.facts.uid, row.facts.live_uid)
    return Asked(row.key[0], row.key[1])


def asked_of_refused(refused: RefusedWrite) -> Asked | None:
    """The record a refusal names, for a new one the page it would lie on; none where it names neither."""
    if refused.uid is not None:
        return Asked(refused.table, refused.uid)
    return Asked("pages", refused.pid) if refused.pid else None


def present(
    rows: Mapping[RowKey, MergedRow],
    observed: Observed,
    visible: Visible,
    readable_tables: Mapping[str, str],
    facts: ConversationFacts,
    words: Words,
    max_rows: int = MAX_ROWS,
) -> ChangeList:
    """The whole list for one viewer; a row that is not visible leaves nothing but a number (R-093).

    Args:
        rows: merged.
        observed: where the numbers come from.
        visible: of the viewer, over every row and refusal.
        readable_tables: labels of the tables the viewer may select; needed for refused new records only.
        facts: of the conversation.
        words: texts in the reader's language.
        max_rows: kept after the filter; targets before what came along, newest first (A-09).
    """
    seen = [(row, record) for row in rows.values() if (record := visible.record(asked_of(row))) is not None]
    kept = _newest_first(seen, max_rows)
    refused, hidden = _refused(observed.refused, visible, readable_tables)
    counts = ChangeCounts(
        visible=len(kept),
        omitted=observed.omitted + len(seen) - len(kept),
        withheld=len(rows) - len(seen),
        unreadable_runs=facts.unreadable_runs,
        legacy_runs=observed.legacy_runs,
        not_captured_calls=observed.not_captured,
        refused_writes=len(observed.refused),
        undone_calls=observed.undone_calls,
    )
    return ChangeList(
        conversation_id=facts.conversation_id,
        changes_revision=facts.changes_revision,
        running=facts.running,
        rows=tuple(_row(row, record, visible) for row, record in kept),
        refused=refused,
        counts=counts,
        notes=_notes(counts, hidden, facts.running, words),
    )


def _newest_first(seen: Sequence[tuple[MergedRow, VisibleRecord]], limit: int) -> list[tuple[MergedRow, VisibleRecord]]:
    """The rows to keep: targets first when not all fit, then shown newest last observation first (A-09, A-22)."""
    newest = sorted(seen, key=lambda item: (item[0].order, item[0].key), reverse=True)
    if len(newest) <= limit:
        return newest
    chosen = sorted(newest, key=lambda item: not item[0].target)[:limit]
    return sorted(chosen, key=lambda item: (item[0].order, item[0].key), reverse=True)


def _row(row: MergedRow, record: VisibleRecord, visible: Visible) -> ChangeRow:
    facts = row.facts
    workspace = None
    if facts is not None:
        title = visible.workspace_titles.get(facts.workspace_id)
        workspace = ChangeRowTitle(id=facts.workspace_id, title=title)
    return ChangeRow(
        key=f"{row.key[0]}:{row.key[1]}",
        table=row.key[0],
        table_label=record.table_label,
        uid=facts.uid if facts is not None else row.key[1],
        title=record.title,
        live_uid=facts.live_uid if facts is not None else None,
        page_id=record.page_id,
        page_title=record.page_title,
        action=row.action,
        created_here=row.created_here,
        workspace=workspace,
        language=_language(facts, record),
        hidden=facts.hidden if facts is not None else None,
        restrictions=_restrictions(facts),
        target=row.target,
        failed=row.failed,
        partial=row.partial,
        relation=row.relation,
        legacy=row.legacy,
        deleted=record.deleted or row.action is ChangeAction.DELETED,
        runs=row.runs,
        calls=tuple(
            ChangeRowCall(run=call.run, call_id=call.call_id, tool=call.tool, at=call.at) for call in row.calls
        ),
        links=_links(row, record),
    )


def _language(facts: StoredFacts | None, record: VisibleRecord) -> ChangeRowTitle | None:
    """Language badge: the observed one; -1 means all languages, none a table without language (A-15)."""
    if facts is None or facts.language is None:
        return None
    title = record.language_title if record.language == facts.language else None
    return ChangeRowTitle(id=facts.language, title=title)


def _restrictions(facts: StoredFacts | None) -> ChangeRowRestrictions | None:
    if facts is None or not (facts.starttime or facts.endtime or facts.fe_group):
        return None
    return ChangeRowRestrictions(
        start=facts.starttime or None, end=facts.endtime or None, groups=facts.fe_group or None
    )


def _links(row: MergedRow, record: VisibleRecord) -> RecordLinks:
    """Links the viewer has a use for: no edit form without the right, no history of a deleted record (R-103)."""
    deleted = record.deleted or row.action is ChangeAction.DELETED
    return RecordLinks(
        edit=record.links.edit if record.may_modify else None,
        history=None if deleted else record.links.history,
        workspace=record.links.workspace,
    )


def _refused(
    refusals: Sequence[RefusedWrite], visible: Visible, readable_tables: Mapping[str, str]
) -> tuple[tuple[RefusedRow, ...], int]:
    """Refusals the viewer may see, each fact once, and the number of the others (R-098)."""
    shown: dict[RefusedRow, None] = {}
    hidden = 0
    for refusal in refusals:
        asked = asked_of_refused(refusal)
        record = visible.record(asked) if asked is not None else None
        if record is None or (refusal.uid is None and refusal.table not in readable_tables):
            hidden += 1
            continue
        row = RefusedRow(
            operation=refusal.operation,
            table=refusal.table,
            uid=refusal.uid,
            title=record.title if refusal.uid is not None else None,
            reason=refusal.reason,
            undone=refusal.undone,
        )
        shown.setdefault(row)
    return tuple(shown), hidden


def _notes(counts: ChangeCounts, refused_withheld: int, running: bool, words: Words) -> tuple[ChangeNote, ...]:
    """The note on coverage always, every other one only with a number (R-100 to R-102)."""
    numbers = (
        (texts.CAPTURE_INCOMPLETE, counts.not_captured_calls),
        (texts.OMITTED, counts.omitted),
        (texts.WITHHELD, counts.withheld),
        (texts.LEGACY_RUNS, counts.legacy_runs),
        (texts.UNREADABLE_RUNS, counts.unreadable_runs),
        (texts.REFUSED_WRITES, counts.refused_writes),
        (texts.REFUSED_WITHHELD, refused_withheld),
        (texts.UNDONE_CALLS, counts.undone_calls),
    )
    notes = [ChangeNote(code=texts.COVERAGE, text=words(texts.NOTES[texts.COVERAGE]))]
    notes.extend(
        ChangeNote(code=code, count=number, text=words(texts.NOTES[code]).replace("{count}", str(number)))
        for code, number in numbers
        if number
    )
    if running:
        notes.append(ChangeNote(code=texts.RUNNING, text=words(texts.NOTES[texts.RUNNING])))
    return tuple(notes)
