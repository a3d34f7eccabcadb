"""Relation tables: read in bulk, changed in memory, written per table at the end of the run (SEMANTICS 13)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from content_store.datahandler.relations.csv import Reference
from content_store.records.gateway import RecordGateway, Row
from content_store.schema.relations import RelationSpec

Side = Literal["uid_local", "uid_foreign"]
MmKey = tuple[int, int, str, str]
_SORT: dict[Side, str] = {"uid_local": "sorting", "uid_foreign": "sorting_foreign"}


def _key(row: Mapping[str, Any]) -> MmKey:
    return (row["uid_local"], row["uid_foreign"], row.get("tablenames", ""), row.get("fieldname", ""))


def _own_side(spec: RelationSpec) -> Side:
    return "uid_foreign" if spec.opposite else "uid_local"


def _other_side(spec: RelationSpec) -> Side:
    return "uid_local" if spec.opposite else "uid_foreign"


class MmStore:
    """Rows of all relation tables that the run has read or changed."""

    def __init__(self, gateway: RecordGateway) -> None:
        self._gateway = gateway
        self._read: dict[tuple[str, Side, int], dict[MmKey, Row]] = {}
        # First state and present state of every row that was changed and not written yet.
        self._pending: dict[str, dict[MmKey, tuple[Row | None, Row | None]]] = defaultdict(dict)
        #: How often a row was changed, written or not.
        self.changes = 0

    def forget(self) -> None:
        """Drops what was read; pending changes stay."""
        self._read.clear()

    def snapshot(self) -> dict[str, dict[MmKey, tuple[Row | None, Row | None]]]:
        """Pending changes, for :meth:`restore`."""
        return {table: dict(changes) for table, changes in self._pending.items()}

    def restore(self, snapshot: dict[str, dict[MmKey, tuple[Row | None, Row | None]]]) -> None:
        """Back to the pending changes of a snapshot."""
        self._read.clear()
        self._pending = defaultdict(dict, {table: dict(changes) for table, changes in snapshot.items()})

    async def rows_of(self, spec: RelationSpec, table: str, uids: Iterable[int]) -> dict[int, list[Row]]:
        """Rows of the field for each record, in the order of the field's side."""
        side = _own_side(spec)
        wanted = list(dict.fromkeys(uids))
        await self._load(spec.mm_table, side, wanted)
        result: dict[int, list[Row]] = {}
        for uid in wanted:
            rows = self._read[spec.mm_table, side, uid].values()
            result[uid] = sorted((r for r in rows if self._belongs(spec, table, r)), key=lambda r: r[_SORT[side]])
        return result

    async def _load(self, table: str, side: Side, uids: Sequence[int]) -> None:
        unread = [uid for uid in uids if (table, side, uid) not in self._read]
        if not unread:
            return
        for uid in unread:
            self._read[table, side, uid] = {}
        for row in await self._gateway.select(
            table, {side: unread}, order_by=(_SORT[side], "uid_local", "uid_foreign")
        ):
            self._read[table, side, row[side]].setdefault(_key(row), row)
        for key, (_, now) in self._pending[table].items():
            own = key[0] if side == "uid_local" else key[1]
            if own in unread:
                self._place(self._read[table, side, own], key, now)

    @staticmethod
    def _place(rows: dict[MmKey, Row], key: MmKey, now: Row | None) -> None:
        if now is None:
            rows.pop(key, None)
        else:
            rows[key] = now

    @staticmethod
    def _belongs(spec: RelationSpec, table: str, row: Row) -> bool:
        if any(str(row.get(name, value)) != str(value) for name, value in spec.mm_match_fields.items()):
            return False
        if spec.opposite:
            return row.get("tablenames", table) in (table, "")
        name = row.get("tablenames", "")
        return spec.tables == ("*",) or not name or name in spec.tables

    def targets(self, spec: RelationSpec, rows: Iterable[Row]) -> list[Reference]:
        """The records the rows point to, seen from the field's side."""
        side = _other_side(spec)
        result = []
        for row in rows:
            table = spec.table if spec.opposite else (row.get("tablenames") or spec.table)
            result.append(Reference(table, str(row[side])))
        return result

    async def holders_of(self, spec: RelationSpec, table: str, uid: int) -> list[int]:
        """Uids of the local side whose rows name the record of the other side, whatever their field."""
        await self._load(spec.mm_table, "uid_foreign", [uid])
        rows = self._read[spec.mm_table, "uid_foreign", uid].values()
        return [row["uid_local"] for row in rows if row.get("tablenames", "") in (table, "")]

    async def write(
        self, spec: RelationSpec, table: str, uid: int, targets: Sequence[Reference]
    ) -> tuple[list[Reference], list[Reference]]:
        """Makes the field's rows be these targets, in this order; only the own sort number is written.

        Returns:
            Targets before and after.
        """
        before = (await self.rows_of(spec, table, [uid]))[uid]
        present = {_key(row): row for row in before}
        sort = _SORT[_own_side(spec)]
        kept: set[MmKey] = set()
        for number, target in enumerate(targets, 1):
            row = self._new_row(spec, table, uid, target)
            key = _key(row)
            if key in kept:
                continue
            kept.add(key)
            old = present.get(key)
            if old is None:
                self._change(spec.mm_table, key, None, {**row, sort: number})
            elif old[sort] != number:
                self._change(spec.mm_table, key, old, {**old, sort: number})
        for key, old in present.items():
            if key not in kept:
                self._change(spec.mm_table, key, old, None)
        return self.targets(spec, before), list(targets)

    def _new_row(self, spec: RelationSpec, table: str, uid: int, target: Reference) -> Row:
        columns = self._gateway.columns_of(spec.mm_table)
        row: Row = {
            _own_side(spec): uid,
            _other_side(spec): target.uid,
            "sorting": 0,
            "sorting_foreign": 0,
            "tablenames": "",
            "fieldname": "",
            **spec.mm_match_fields,
        }
        if spec.opposite:
            row["tablenames"] = row["tablenames"] or table
        else:
            usage = spec.opposite_usage.get(target.table, [])
            if spec.several_tables or usage:
                row["tablenames"] = target.table
            if len(usage) == 1:
                row["fieldname"] = usage[0]
        return {name: value for name, value in row.items() if name in columns}

    def _change(self, table: str, key: MmKey, old: Row | None, new: Row | None) -> None:
        first = self._pending[table][key][0] if key in self._pending[table] else old
        self._pending[table][key] = (first, new)
        self.changes += 1
        for side, uid in (("uid_local", key[0]), ("uid_foreign", key[1])):
            rows = self._read.get((table, side, uid))  # type: ignore[arg-type]
            if rows is not None:
                self._place(rows, key, new)

    async def flush(self) -> None:
        """Writes all changes, a few statements per table."""
        pending, self._pending = self._pending, defaultdict(dict)
        for table, changes in pending.items():
            new = [now for first, now in changes.values() if first is None and now is not None]
            gone = [first for first, now in changes.values() if first is not None and now is None]
            await self._gateway.delete_mm(table, gone)
            await self._gateway.insert_rows(table, new)
            for column in _SORT.values():
                moved = [
                    now
                    for first, now in changes.values()
                    if first is not None and now is not None and first[column] != now[column]
                ]
                await self._gateway.update_mm(table, column, moved)
