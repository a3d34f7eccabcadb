"""What a card says a call will change, what comes along and what would be refused, for one viewer (R-098, CALLS 4). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from remit_contracts.calls import CallOutcome, RehearsedCall, ShownChange
from remit_contracts.changes import RefusedWrite
from remit_contracts.runs import PendingTurn

from chat_gateway.access.visibility import Asked, Visible
from chat_gateway.approvals import texts
from chat_gateway.changes.presenter import asked_of_refused
from chat_gateway.identifiers import reduce_identifier

Words = Callable[..., str]
MAX_LINES = 20


def asked_of_turn(turn: PendingTurn) -> list[Asked]:
    """Every record the lines of a card could name, to be asked about at once."""
    asked: list[Asked] = []
    for call in turn.calls:
        if call.rehearsal is None:
            continue
        by_place = _pages(call.rehearsal.shown)
        asked.extend(item for shown in call.rehearsal.shown if (item := _asked(shown, by_place)) is not None)
        refused = call.rehearsal.changes.refused
        asked.extend(item for refusal in refused if (item := asked_of_refused(refusal)) is not None)
    return asked


def rehearsal_lines(
    rehearsal: RehearsedCall | None, visible: Visible | None, tables: Mapping[str, str], words: Words
) -> tuple[str, ...]:
    """The lines of one call.

    Args:
        rehearsal: of the call; none where it writes nothing.
        visible: of the viewer; none where that could not be checked, then nothing is named (R-095).
        tables: tables the viewer may select, for new records.
        words: texts in the reader's language, with parameters.
    """
    if rehearsal is None:
        return ()
    if rehearsal.outcome is CallOutcome.UNKNOWN or rehearsal.problem is not None:
        return (words(texts.UNKNOWN_ALONG),)
    if visible is None:
        return (words(texts.NOT_CHECKED),)
    lines = [words(texts.ROLLED_BACK)] if rehearsal.outcome is CallOutcome.ROLLED_BACK else []
    lines.extend(_changes(rehearsal, visible, tables, words))
    lines.extend(_refusals(rehearsal.changes.refused, visible, tables, words))
    return tuple(lines)


def _changes(rehearsal: RehearsedCall, visible: Visible, tables: Mapping[str, str], words: Words) -> list[str]:
    by_place = _pages(rehearsal.shown)
    targets = _targets(rehearsal)
    own: list[str] = []
    along: list[str] = []
    hidden = 0
    for shown in rehearsal.shown:
        record = _named(shown, by_place, visible, tables, words)
        if record is None:
            hidden += 1
            continue
        target = targets.get((shown.table, shown.action, _uid(shown.record)), 0) > 0
        if target:
            targets[(shown.table, shown.action, _uid(shown.record))] -= 1
        wording = texts.WILL if target else texts.ALONG
        template = wording.get(shown.action, wording["updated"])
        (own if target else along).append(words(template, record=record))
    lines = [*own, *along]
    more = max(0, len(lines) - MAX_LINES) + rehearsal.changes.changes_omitted
    result = lines[:MAX_LINES]
    if more:
        result.append(words(texts.MORE_CHANGES, count=more))
    if hidden:
        result.append(words(texts.HIDDEN_CHANGES, count=hidden))
    return result


def _targets(rehearsal: RehearsedCall) -> Counter[tuple[str, str, int | None]]:
    """How many shown changes are the call's own, by table, action and uid; a new record has no uid that lasts."""
    found: Counter[tuple[str, str, int | None]] = Counter()
    lasting = {(shown.table, _uid(shown.record)) for shown in rehearsal.shown}
    for change in rehearsal.changes.changes:
        if change.write_target:
            uids = [uid for uid in (change.uid, change.live_uid) if (change.table, uid) in lasting]
            found[(change.table, change.action.value, uids[0] if uids else None)] += 1
    return found


def _named(
    shown: ShownChange, by_place: Mapping[str, ShownChange], visible: Visible, tables: Mapping[str, str], words: Words
) -> str | None:
    asked = _asked(shown, by_place)
    record = visible.record(asked) if asked is not None else None
    if record is None:
        return None
    uid = _uid(shown.record)
    if uid is not None:
        return words(texts.RECORD, title=record.title, label=record.table_label, table=shown.table, uid=uid)
    if shown.table not in tables:
        return None
    if _uid(shown.pid) is None:
        return words(texts.NEW_RECORD_NESTED, table=tables[shown.table])
    return words(texts.NEW_RECORD, table=tables[shown.table], title=record.title, uid=record.uid)


def _asked(shown: ShownChange, by_place: Mapping[str, ShownChange], depth: int = 0) -> Asked | None:
    """The stored record that stands for a line: itself, else the page a new record lies on, else that page's page."""
    uid = _uid(shown.record)
    if uid is not None:
        return Asked(shown.table, uid)
    page = _uid(shown.pid)
    if page is not None:
        return Asked("pages", page)
    parent = by_place.get(shown.pid)
    return _asked(parent, by_place, depth + 1) if parent is not None and depth < 50 else None


def _pages(shown: Sequence[ShownChange]) -> dict[str, ShownChange]:
    return {item.record: item for item in shown if item.table == "pages" and _uid(item.record) is None}


def _uid(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) <= 10 and int(text) > 0 else None


def _refusals(refused: Iterable[RefusedWrite], visible: Visible, tables: Mapping[str, str], words: Words) -> list[str]:
    lines: dict[str, None] = {}
    hidden = 0
    for refusal in refused:
        asked = asked_of_refused(refusal)
        record = visible.record(asked) if asked is not None else None
        reason = reduce_identifier(refusal.reason)
        if record is None or (refusal.uid is None and refusal.table not in tables):
            hidden += 1
        elif refusal.uid is not None:
            named = words(
                texts.RECORD, title=record.title, label=record.table_label, table=refusal.table, uid=refusal.uid
            )
            lines.setdefault(words(texts.WOULD_REFUSE, record=named, reason=reason))
        else:
            named = words(texts.NEW_RECORD, table=tables[refusal.table], title=record.title, uid=record.uid)
            lines.setdefault(words(texts.WOULD_REFUSE, record=named, reason=reason))
    result = list(lines)[:MAX_LINES]
    if hidden:
        result.append(words(texts.HIDDEN_REFUSED, count=hidden))
    return result
