"""Deletion: records with their children and translations, pages with their branch (SEMANTICS 12)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from content_store.datahandler.commands.move import branch_of, is_page_translation
from content_store.datahandler.datamap_update import refuse_drafts
from content_store.datahandler.errors import ErrorCode, Refusal
from content_store.datahandler.history import HistoryAction
from content_store.datahandler.log import LogAction
from content_store.datahandler.pointers import deny
from content_store.datahandler.refindex_rows import relation_places
from content_store.datahandler.relations.children import child_rows
from content_store.datahandler.relations.parents import register_parents
from content_store.datahandler.remap import register_mm
from content_store.datahandler.writer import log_message, note_history, relation_columns

if TYPE_CHECKING:
    from content_store.datahandler.refindex_rows import Place
    from content_store.datahandler.run import HandlerRun
    from content_store.records.gateway import Row
    from content_store.schema.model import TableSchema


class Deletion:
    """One delete command with everything it takes along; rows are written per table at its end.

    Args:
        run: the instance at work.
        hard: remove rows although the table has a deleted flag; also takes rows that are deleted softly already.
        checked: ask for rights (a recycler does not).
    """

    def __init__(self, run: HandlerRun, *, hard: bool = False, checked: bool = True) -> None:
        self.run = run
        self.ctx = run.ctx
        self.hard = hard
        self.checked = checked
        self._done: set[tuple[str, int]] = set()
        # Pages that go as a whole: what lies on them needs no right of its own on the page.
        self._branch: set[int] = set()
        self._soft: dict[str, list[int]] = defaultdict(list)
        self._gone: dict[str, list[int]] = defaultdict(list)

    async def delete(self, table_name: str, uid: int) -> None:
        """Deletes one record by the rules of the command.

        Raises:
            Refusal: no such record or a missing right.
        """
        table = self.ctx.table(table_name)
        row = await self._row(table, uid)
        if (table_name, uid) in self._done:
            return
        refuse_drafts(self.run, table, row)
        await self._check(table, row)
        handled = False
        for hook in self.ctx.hooks:
            handled = await hook.delete_action(self.run, table_name, uid, row, handled)
        if handled:
            return
        if table_name == "pages" and not is_page_translation(table, row):
            await self._delete_branch(row)
        else:
            await self._delete_record(table, row)

    async def flush(self) -> None:
        """Writes the collected rows: flags and removals, one statement each per table."""
        for name, uids in self._soft.items():
            table = self.ctx.table(name)
            values: dict[str, Any] = {table.delete_field or "": 1}
            if table.tstamp_field:
                values[table.tstamp_field] = self.ctx.now
            await self.ctx.gateway.update_many(name, uids, values)
        for name, uids in self._gone.items():
            await self.ctx.gateway.delete(name, uids)
        self._soft.clear()
        self._gone.clear()

    async def _row(self, table: TableSchema, uid: int) -> Row:
        row = await self.ctx.reader.stored(table.name, uid)
        if row is None or (
            not self.hard and self.ctx.reader.is_deleted(table.name, row) and not self._is_done(table, uid)
        ):
            data = {"table": table.name, "uid": uid}
            raise Refusal(ErrorCode.RECORD_NOT_FOUND, "There is no record {table}:{uid}", data)
        return row

    def _is_done(self, table: TableSchema, uid: int) -> bool:
        return (table.name, uid) in self._done

    async def _check(self, table: TableSchema, row: Row) -> None:
        if not self.checked:
            return
        policy = self.ctx.policy
        deny(await policy.modify_table(table.name))
        deny(await policy.delete(table.name, row))
        deny(await policy.edit_record(table.name, row, all_languages=True))

    # --- pages --------------------------------------------------------------------------------------------------

    async def _delete_branch(self, row: Row) -> None:
        pages = await branch_of(self.run, row["uid"], deleted=self.hard)
        tables = [t for t in self.ctx.schema if t.name != "pages"]
        content: dict[str, dict[int, list[Row]]] = {}
        for table in tables:
            found = await self.ctx.reader.lookup(table.name, "pid", pages, deleted=self.hard)
            content[table.name] = {page: rows for page, rows in found.items() if rows}
        if self.checked:
            languages = {
                name: {r.get(self.ctx.table(name).language_field or "", 0) for rows in by_page.values() for r in rows}
                for name, by_page in content.items()
                if by_page
            }
            below = [uid for uid in pages if uid != row["uid"]]
            deny(await self.ctx.policy.delete_branch(row["uid"], below, languages))
        self._branch.update(pages)
        for uid in reversed(pages):
            for table in tables:
                for record in content[table.name].get(uid, []):
                    await self._delete_on_page(table, record["uid"])
            page = await self.ctx.reader.stored("pages", uid)
            if page is not None:
                await self._delete_record(self.ctx.table("pages"), page)

    async def _delete_on_page(self, table: TableSchema, uid: int) -> None:
        if (table.name, uid) in self._done:
            return
        row = await self.ctx.reader.stored(table.name, uid)
        if row is None:
            return
        if self.checked:
            deny(await self.ctx.policy.edit_record(table.name, row))
        await self._delete_record(table, row)

    async def _delete_content_in_language(self, page: int, language: int) -> None:
        for table in self.ctx.schema:
            if table.name == "pages" or not table.localizable:
                continue
            found = await self.ctx.reader.lookup(table.name, "pid", [page], deleted=self.hard)
            for record in found.get(page, []):
                if record[table.language_field or ""] == language:
                    await self._delete_on_page(table, record["uid"])

    # --- records ------------------------------------------------------------------------------------------------

    async def _delete_record(self, table: TableSchema, row: Row) -> None:
        if (table.name, row["uid"]) in self._done:
            return
        self._done.add((table.name, row["uid"]))
        gone = self.hard or not table.delete_field
        await self._delete_children(table, row, gone)
        if is_page_translation(table, row) and not await self._has_rival(table, row):
            await self._delete_content_in_language(row[table.parent_field or ""], row[table.language_field or ""])
        if not gone:
            await self._delete_translations(table, row)
        if gone:
            await self._remove(table, row)
            await self._delete_translations(table, row)
        elif not self.ctx.reader.is_deleted(table.name, row):
            self._flag(table, row)

    async def _has_rival(self, table: TableSchema, row: Row) -> bool:
        """Is there another translation of the page in this language (only asked when removing for good)?"""
        if not self.hard:
            return False
        others = await self.ctx.reader.translations(table.name, row[table.parent_field or ""])
        language = table.language_field or ""
        return any(o["uid"] != row["uid"] and o[language] == row[language] for o in others)

    async def _delete_children(self, table: TableSchema, row: Row, gone: bool) -> None:
        for place in relation_places(self.ctx.schema, table, row):
            if not place.spec.children or place.spec.table not in self.ctx.schema or not self._cascades(table, place):
                continue
            rows = await child_rows(self.ctx, place.spec, table.name, row["uid"], place.value, deleted=gone)
            before, self.hard = self.hard, gone
            try:
                for child in rows:
                    await self._delete_child(place.spec.table, child["uid"])
            finally:
                self.hard = before

    @staticmethod
    def _cascades(table: TableSchema, place: Place) -> bool:
        behaviour = table.columns[place.column].config.get("behaviour")
        return not isinstance(behaviour, dict) or behaviour.get("enableCascadingDelete", True) is not False

    async def _delete_child(self, table_name: str, uid: int) -> None:
        if (table_name, uid) in self._done:
            return
        row = await self.ctx.reader.stored(table_name, uid)
        if row is None:
            return
        if self.checked:
            # What goes along is deleted by the user, too; where it may not be, nothing goes.
            deny(await self.ctx.policy.modify_table(table_name))
            if row["pid"] not in self._branch:
                deny(await self.ctx.policy.delete(table_name, row))
            deny(await self.ctx.policy.edit_record(table_name, row))
        handled = False
        for hook in self.ctx.hooks:
            handled = await hook.delete_action(self.run, table_name, uid, row, handled)
        if not handled:
            await self._delete_record(self.ctx.table(table_name), row)

    async def _delete_translations(self, table: TableSchema, row: Row) -> None:
        if not table.localizable or row[table.language_field or ""] != 0:
            return
        parent_field = table.parent_field or ""
        found = await self.ctx.reader.lookup(table.name, parent_field, [row["uid"]], deleted=self.hard)
        hard = self.hard and table.name == "pages"
        for translation in found.get(row["uid"], []):
            if translation[table.language_field or ""] <= 0 or (table.name, translation["uid"]) in self._done:
                continue
            if self.hard and not hard and self.ctx.reader.is_deleted(table.name, translation):
                continue
            before, self.hard = self.hard, hard
            try:
                await self._delete_child(table.name, translation["uid"])
            finally:
                self.hard = before

    def _flag(self, table: TableSchema, row: Row) -> None:
        self._soft[table.name].append(row["uid"])
        values = {table.delete_field or "": 1}
        if table.tstamp_field:
            values[table.tstamp_field] = self.ctx.now
        self.ctx.reader.note_update(table.name, row["uid"], values)
        self._record(table, row)

    async def _remove(self, table: TableSchema, row: Row) -> None:
        for _, spec in relation_columns(table, row):
            if spec.storage == "mm":
                before, _ = await self.ctx.mm.write(spec, table.name, row["uid"], [])
                register_mm(self.run, spec, table.name, row["uid"], before)
        self._gone[table.name].append(row["uid"])
        self.ctx.reader.note_delete(table.name, row["uid"])
        self._record(table, row)

    def _record(self, table: TableSchema, row: Row) -> None:
        note_history(self.ctx, HistoryAction.DELETE, table.name, row["uid"], None)
        self.ctx.references.register(table.name, row["uid"], as_target=True)
        register_parents(self.ctx, table.name, row)
        log_message(self.run, LogAction.DELETE, table, row, 'Record "{label}" ({table}:{uid}) was deleted')
        if table.name == "pages":
            self.ctx.forget_settings()


async def delete_record(run: HandlerRun, table: str, uid: int) -> None:
    """The command ``delete``.

    Raises:
        Refusal: no such record or a missing right.
    """
    deletion = Deletion(run)
    await deletion.delete(table, uid)
    await deletion.flush()


async def hard_delete(run: HandlerRun, table: str, uid: int) -> None:
    """What a recycler does: removes a record, deleted softly or not, without asking for rights.

    Raises:
        Refusal: no such record.
    """
    deletion = Deletion(run, hard=True, checked=False)
    await deletion.delete(table, uid)
    await deletion.flush()
