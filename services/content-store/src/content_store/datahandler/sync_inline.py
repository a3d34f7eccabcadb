"""Children of a field whose translations are kept in step (SEMANTICS 7 rule 5)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from content_store.datahandler.entries import read_uid
from content_store.datahandler.labels import prefix_language
from content_store.datahandler.relations.children import child_uids
from content_store.datahandler.relations.csv import split_list
from content_store.datahandler.savepoints import SYNC_SAVEPOINT, snapshot_run
from content_store.schema.relations import RelationSpec

if TYPE_CHECKING:
    from content_store.datahandler.sync import Synchronization
    from content_store.datahandler.sync_state import SyncItem
    from content_store.schema.model import TableSchema


class InlineSynchronization:
    """Makes the children of a translation be those of its original."""

    def __init__(self, sync: Synchronization) -> None:
        self._sync = sync
        self._ctx = sync.ctx

    async def take_over(self, item: SyncItem, name: str, spec: RelationSpec, from_id: str) -> None:
        """Localizes or copies missing children, deletes surplus ones, keeps the order of the original."""
        if spec.table not in self._ctx.schema:
            return
        child = self._ctx.table(spec.table)
        wanted = await self._originals(item, name, spec, from_id)
        present = await self._children(item.table, item.id, name, spec)
        twins = await self._twins(child, wanted, item.language, present)
        # Children that are translations themselves still hang on the original until the run is over.
        wanted = [w for w in wanted if w not in twins.values()]
        missing = [w for w in wanted if w not in twins]
        surplus = [p for p in present if p not in twins.values()]
        surplus += [twin for original, twin in twins.items() if original not in wanted and twin not in surplus]
        # A child that could not be translated is left out: the original stays with its own parent.
        result = dict.fromkeys(wanted, "") | twins
        if missing or surplus:
            if missing and item.new and self._reuse_copies(item, name, len(missing)):
                return
            exclude = self._ctx.table(item.table).columns[name].l10n_mode == "exclude"
            result.update(await self._apply(item, child, missing, surplus, exclude))
        self._sync.modify(item.table, item.id, {name: ",".join(result[w] for w in wanted if result[w])})

    def _reuse_copies(self, item: SyncItem, name: str, missing: int) -> bool:
        # A copied translation brings copies of its children along; they must not be made a second time.
        discarded = self._sync.discarded.get((item.table, item.id, name))
        if discarded is None or len(split_list(discarded)) != missing:
            return False
        self._sync.modify(item.table, item.id, {name: discarded})
        return True

    async def _originals(self, item: SyncItem, name: str, spec: RelationSpec, from_id: str) -> list[str]:
        entry = self._sync.entry(item.table, from_id) or {}
        if name in entry:
            return [t for t in split_list(entry[name]) if "NEW" in t or read_uid(t)]
        return await self._children(item.table, from_id, name, spec)

    async def _children(self, table: str, record_id: str, name: str, spec: RelationSpec) -> list[str]:
        if "NEW" in record_id:
            return []
        row = await self._ctx.reader.record(table, int(record_id))
        if row is None:
            return []
        return [str(uid) for uid in await child_uids(self._ctx, spec, table, int(record_id), row.get(name))]

    async def _twins(
        self, child: TableSchema, originals: list[str], language: int, present: list[str]
    ) -> dict[str, str]:
        """Original -> its translation in the language (without languages: its copy among the children)."""
        uids = [int(o) for o in originals if read_uid(o)]
        twins: dict[str, str] = {}
        if child.localizable:
            for pointer in (child.source_field, child.parent_field):
                if not pointer:
                    continue
                for uid, rows in (await self._ctx.reader.lookup(child.name, pointer, uids)).items():
                    for row in rows:
                        if row[child.language_field or ""] == language:
                            twins[str(uid)] = str(row["uid"])
        elif child.orig_uid_field:
            for uid, rows in (await self._ctx.reader.lookup(child.name, child.orig_uid_field, uids)).items():
                twin = next((str(r["uid"]) for r in rows if str(r["uid"]) in present), None)
                if twin is not None:
                    twins[str(uid)] = twin
        return {o: twins[o] for o in originals if o in twins}

    async def _apply(
        self, item: SyncItem, child: TableSchema, missing: list[str], surplus: list[str], exclude: bool
    ) -> dict[str, str]:
        stored = [m for m in missing if read_uid(m)]
        commands: dict[str, dict[str, Any]] = {uid: {"delete": True} for uid in surplus}
        for uid in stored:
            if exclude or not child.localizable:
                commands[uid] = {"copy": {"target": -int(uid), "ignoreLocalization": True}}
            else:
                commands[uid] = {"localize": item.language}
        made = await self._run_commands(child.name, commands)
        result: dict[str, str] = {}
        for uid in stored:
            copy = made.get(int(uid))
            if copy is None:
                continue
            result[uid] = str(copy)
            if exclude and child.localizable:
                self._sync.modify(child.name, str(copy), self._pointers(child, uid, item.language))
        for placeholder in missing:
            if not read_uid(placeholder):
                result[placeholder] = await self._duplicate(child, placeholder, item.language, prefixed=not exclude)
        return result

    async def _run_commands(self, table: str, commands: dict[str, dict[str, Any]]) -> dict[int, int]:
        if not commands:
            return {}
        # The commands write through datamaps, whose first step is this module.
        from content_store.datahandler.commands.dispatch import process_commands

        run = self._sync.run
        if run.before_sync is None:
            # Written before the entry itself was asked for its rights: it may have to be taken back.
            snapshot = snapshot_run(run)
            await run.ctx.gateway.savepoint("SAVEPOINT", SYNC_SAVEPOINT)
            run.before_sync = snapshot
        nested = run.nested()
        nested.cmdmap = {table: commands}
        await process_commands(nested)
        return dict(nested.copied_merged.get(table, {}))

    def _pointers(self, child: TableSchema, original: str, language: int) -> dict[str, Any]:
        values: dict[str, Any] = {child.language_field or "": language, child.parent_field or "": original}
        if child.source_field:
            values[child.source_field] = original
        return values

    async def _duplicate(self, child: TableSchema, placeholder: str, language: int, *, prefixed: bool) -> str:
        """A new child of the original gets a translated twin in the datamap."""
        values = dict(self._sync.entry(child.name, placeholder) or {})
        if child.localizable:
            # The twin of a twin keeps pointing to the first original.
            values = {**self._pointers(child, placeholder, language), **values, child.language_field or "": language}
            page = self._page_of(values)
            for column in child.columns.values() if prefixed else ():
                if column.name in values and column.l10n_mode == "prefixLangTitle":
                    values[column.name] = await prefix_language(
                        self._sync.run, child, column, values[column.name], language, page
                    )
        twin = f"NEW{uuid.uuid4().hex}"
        self._sync.add_twin(child.name, twin, values)
        return twin

    @staticmethod
    def _page_of(values: dict[str, Any]) -> int:
        return read_uid(values.get("pid")) or 0
