"""Translations kept in step: what a change of a record means for its translations (SEMANTICS 7).

Before a datamap is processed it is extended: values that belong to the original are thrown out of submitted
translations and filled again, and a submitted original passes its values on to its translations, which become entries
of their own. This repeats until nothing new is added, so a chain of translations works in one run.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from content_store.datahandler.errors import Refusal
from content_store.datahandler.pointers import may_read_values
from content_store.datahandler.relations.csv import format_reference
from content_store.datahandler.sync_inline import InlineSynchronization
from content_store.datahandler.sync_state import CUSTOM, PARENT, SOURCE, SyncItem, read_state, state_fields

if TYPE_CHECKING:
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema

_STATE_FIELD: Final = "l10n_state"


async def synchronize(run: HandlerRun) -> None:
    """Extends ``run.datamap``."""
    if any(_applies(run, table) for table in run.datamap):
        await Synchronization(run).extend()


def _applies(run: HandlerRun, table: str) -> bool:
    schema = run.ctx.schema.tables.get(table)
    return schema is not None and schema.localizable and schema.has_synchronized_fields


class Synchronization:
    """Extends the datamap of one instance."""

    def __init__(self, run: HandlerRun) -> None:
        self.run = run
        self.ctx = run.ctx
        self.items: dict[tuple[str, str], SyncItem] = {}
        # Children a submitted new translation came with, thrown away before they were looked at.
        self.discarded: dict[tuple[str, str, str], Any] = {}
        self._modified: dict[tuple[str, str], None] = {}
        self._twins: set[tuple[str, str]] = set()
        self._inline = InlineSynchronization(self)

    # --- datamap ------------------------------------------------------------------------------------------------

    def entry(self, table: str, record_id: str) -> dict[str, Any] | None:
        """The datamap entry of a record."""
        return self.run.datamap.get(table, {}).get(record_id)

    def modify(self, table: str, record_id: str, values: dict[str, Any]) -> None:
        """Adds values to an entry, made when there is none, and has it looked at once more."""
        self.run.datamap.setdefault(table, {}).setdefault(record_id, {}).update(values)
        self._modified[table, record_id] = None

    def add_twin(self, table: str, record_id: str, values: dict[str, Any]) -> None:
        """Adds the translation of a record that is new itself; what belongs to its original is filled again."""
        self._twins.add((table, record_id))
        self.modify(table, record_id, values)

    async def extend(self) -> None:
        """The whole extension."""
        pending = [(table, key) for table, rows in self.run.datamap.items() for key in rows]
        first = True
        while pending:
            await self._prefetch(pending)
            items = [item for table, key in pending if (item := await self.item(table, key)) is not None]
            for item in items:
                if first or (item.table, item.id) in self._twins:
                    self._discard(item, submitted=first)
            first = False
            self._twins = set()
            self._modified = {}
            for item in items:
                await self._fill_itself(item)
                await self._pass_on(item)
            pending = list(self._modified)

    async def _prefetch(self, pending: list[tuple[str, str]]) -> None:
        by_table: dict[str, list[int]] = defaultdict(list)
        for table, key in pending:
            if "NEW" not in key and _applies(self.run, table):
                by_table[table].append(int(key))
        for table, uids in by_table.items():
            rows = await self.ctx.reader.stored_many(table, uids)
            schema = self.ctx.table(table)
            defaults = [uid for uid, row in rows.items() if row[schema.language_field or ""] == 0]
            if defaults and schema.parent_field:
                await self.ctx.reader.lookup(table, schema.parent_field, defaults)

    # --- items --------------------------------------------------------------------------------------------------

    async def item(self, table: str, record_id: str) -> SyncItem | None:
        """The record as synchronization sees it; ``None`` for language -1, free mode and tables it is not for."""
        key = (table, record_id)
        if key in self.items:
            return self.items[key]
        if not _applies(self.run, table):
            return None
        schema = self.ctx.table(table)
        submitted = self.entry(table, record_id) or {}
        row: Row | None = None
        if "NEW" not in record_id:
            row = await self.ctx.reader.stored(table, int(record_id))
            if row is None:
                return None
        item = SyncItem.build(schema, record_id, row, submitted)
        if item is None:
            return None
        read_state(item, schema, row, submitted)
        self.items[key] = item
        return item

    def _discard(self, item: SyncItem, *, submitted: bool) -> None:
        """Throws away what a submitted translation may not decide, and notes the state of its fields."""
        if not item.is_translation:
            return
        entry = self.entry(item.table, item.id)
        if entry is None:
            return
        for name in self._bound_fields(item):
            if name not in entry:
                continue
            value = entry.pop(name)
            if submitted:
                self.run.bound.setdefault((item.table, item.id), {})[name] = value
                if value is not None:
                    self.discarded[item.table, item.id, name] = value
        self._write_state(item, entry)

    def _bound_fields(self, item: SyncItem) -> list[str]:
        schema = self.ctx.table(item.table)
        bound = [c.name for c in schema.columns.values() if c.l10n_mode == "exclude"]
        return bound + [name for name, state in item.state.items() if state != CUSTOM]

    def _write_state(self, item: SyncItem, entry: dict[str, Any]) -> None:
        text = item.state_json()
        if text is not None:
            entry[_STATE_FIELD] = text
        elif not isinstance(entry.get(_STATE_FIELD), str) or not state_fields(self.ctx.table(item.table)):
            entry.pop(_STATE_FIELD, None)

    # --- values -------------------------------------------------------------------------------------------------

    async def _fill_itself(self, item: SyncItem) -> None:
        if not item.is_translation:
            return
        exclude = [c.name for c in self.ctx.table(item.table).columns.values() if c.l10n_mode == "exclude"]
        parent = exclude + [n for n, s in item.state.items() if s == PARENT and (item.new or n in item.changed)]
        await self._take_over(item, parent, item.parent)
        source = [n for n, s in item.state.items() if s == SOURCE and (item.new or n in item.changed)]
        await self._take_over(item, source, item.source)

    async def _pass_on(self, item: SyncItem) -> None:
        for dependent in await self._dependents(item):
            if not item.is_translation:
                exclude = [c.name for c in self.ctx.table(item.table).columns.values() if c.l10n_mode == "exclude"]
                parent = [name for name, state in dependent.state.items() if state == PARENT]
                await self._take_over(dependent, exclude + parent, item.id)
            if dependent.source == item.id:
                source = [name for name, state in dependent.state.items() if state == SOURCE]
                await self._take_over(dependent, source, item.id)

    async def _dependents(self, item: SyncItem) -> list[SyncItem]:
        schema = self.ctx.table(item.table)
        pointer = schema.source_field if item.is_translation else schema.parent_field
        found: list[SyncItem] = []
        if not item.new and pointer:
            rows = (await self.ctx.reader.lookup(item.table, pointer, [int(item.id)])).get(int(item.id), [])
            for row in rows:
                dependent = await self.item(item.table, str(row.get("_version_uid") or row["uid"]))
                if dependent is not None and dependent.is_translation:
                    found.append(dependent)
        known = {dependent.id for dependent in found}
        for other in list(self.items.values()):
            if other.table != item.table or not other.is_translation or other.id in known:
                continue
            if (other.source if item.is_translation else other.parent) == item.id:
                found.append(other)
        return found

    async def _take_over(self, item: SyncItem, names: list[str], from_id: str) -> None:
        if not names or from_id in ("", "0"):
            return
        schema = self.ctx.table(item.table)
        source_entry = self.entry(item.table, from_id) or {}
        source_row = await self.ctx.reader.record(item.table, int(from_id)) if "NEW" not in from_id else None
        if source_row is not None and not await may_read_values(self.run, schema, source_row):
            # An entry that names such an original is refused when its turn comes; until then nothing leaks into it.
            return
        for name in names:
            entry = self.entry(item.table, item.id) or {}
            if name in entry:
                continue
            if name not in source_entry and (source_row is None or name not in source_row):
                continue
            await self._take_field(item, schema, name, from_id, source_entry, source_row)
        taken = self.entry(item.table, item.id)
        if taken is not None:
            self._write_state(item, taken)

    async def _take_field(
        self,
        item: SyncItem,
        schema: TableSchema,
        name: str,
        from_id: str,
        source_entry: dict[str, Any],
        source_row: Row | None,
    ) -> None:
        spec = schema.columns[name].relation
        if spec is not None and spec.children:
            # A list that cannot be read is not taken over; the entry that submitted it is refused when its turn comes.
            with suppress(Refusal):
                await self._inline.take_over(item, name, spec, from_id)
            return
        if name in source_entry:
            value = source_entry[name]
        elif spec is not None and spec.storage == "mm":
            rows = (await self.ctx.mm.rows_of(spec, item.table, [int(from_id)]))[int(from_id)]
            value = ",".join(format_reference(r, spec) for r in self.ctx.mm.targets(spec, rows))
        else:
            value = source_row[name] if source_row is not None else None
        self.modify(item.table, item.id, {name: value})
