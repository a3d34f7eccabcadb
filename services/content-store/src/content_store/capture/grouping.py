"""Folds captured rows into one delta per record (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from content_store.capture.model import CapturedRow, Operation, Relation, RowDelta


def group_rows(rows: Iterable[CapturedRow]) -> list[RowDelta]:
    """One delta per record and per MM row, in the order of first appearance (CALLS 3).

    A record keeps the identity before its first statement and after its last. MM rows are counted: one that was
    removed and put back neither came nor went.
    """
    records: dict[tuple[str, int], RowDelta] = {}
    relations: dict[tuple[str, Relation], RowDelta] = {}
    order: list[tuple[str, int] | tuple[str, Relation]] = []
    for row in rows:
        if row.relation is not None:
            key = (row.table, row.relation)
            if key not in relations:
                order.append(key)
            relations[key] = _fold_relation(relations.get(key), row, row.relation)
        else:
            record = (row.table, row.uid)
            if record not in records:
                order.append(record)
            records[record] = _fold_record(records.get(record), row)
    return [relations[(table, key)] if isinstance(key, Relation) else records[(table, key)] for table, key in order]


def _fold_record(known: RowDelta | None, row: CapturedRow) -> RowDelta:
    # A row that was removed and made again under its uid may differ in any column.
    other = row.other_changed or row.operation is not Operation.UPDATE
    if known is None:
        return RowDelta(row.table, row.uid, row.before, row.after, other, row.sorting_changed)
    return RowDelta(
        row.table,
        row.uid,
        known.before,
        row.after,
        known.other_changed or other,
        known.sorting_changed or row.sorting_changed,
    )


def _fold_relation(known: RowDelta | None, row: CapturedRow, relation: Relation) -> RowDelta:
    step = {Operation.INSERT: 1, Operation.DELETE: -1, Operation.UPDATE: 0}[row.operation]
    return RowDelta(
        row.table,
        0,
        None,
        None,
        row.other_changed or (known is not None and known.other_changed),
        row.sorting_changed or (known is not None and known.sorting_changed),
        relation,
        step + (known.relation_change if known is not None else 0),
    )
