"""Random hooks of an installation: they write on their own, by handlers and by plain SQL, fail, or end the transaction."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from typing import Any

import asyncpg
from content_store.datahandler.handler import DataHandler, HandlerActor
from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.datahandler.run import HandlerRun

from store_support.fuzz.targets import Targets

Maps = Callable[[], tuple[dict[str, Any], dict[str, Any]]]
Work = Callable[[HandlerRun], Coroutine[Any, Any, None]]
_MM = "sys_category_record_mm"


def random_hook(source: random.Random, targets: Targets, maps: Maps) -> DataHandlerHook:
    """A hook that does one thing, once, at a moment of its choice.

    Args:
        source: of chance.
        targets: records of the call.
        maps: makes a datamap and a cmdmap.
    """
    outside = source.choice((0.0, 0.5, 1.0))
    sql = _query(source, lambda table: targets.uid(table, outside=outside))
    if source.random() < 0.4:
        sql = _entangled(source, targets, outside)
    datamap, cmdmap = maps()
    commands = source.choice((cmdmap, {}))
    rude = _rudeness(source, sql)
    hidden = source.random() < 0.5

    async def query(run: HandlerRun) -> None:
        await run.ctx.gateway.connection.execute(sql)

    async def rudeness(run: HandlerRun) -> None:
        try:
            await run.ctx.gateway.connection.execute(rude)
        except asyncpg.PostgresError:
            if not hidden:
                raise

    async def write(run: HandlerRun) -> None:
        await DataHandler.within(run).process(datamap, {})

    async def command(run: HandlerRun) -> None:
        await DataHandler.within(run).process({}, cmdmap)

    async def own(run: HandlerRun) -> None:
        # A handler that knows nothing of the call's hooks: only the database tells of what it writes.
        handler = DataHandler(run.ctx.gateway, HandlerActor(run.ctx.policy.user), sites=run.ctx.sites)
        await handler.process(datamap, commands)

    async def fail(_run: HandlerRun) -> None:
        raise RuntimeError("hook")

    moment = source.choice(("start", "write", "write", "write", "end"))
    kinds: list[tuple[int, Work, Any]] = [
        (50, query, sql),
        (14, write, datamap),
        (10, command, cmdmap),
        (14, own, (datamap, commands)),
        (5, fail, "raises"),
        (7, rudeness, f"{rude} {'and hides it' if hidden else ''}"),
    ]
    _, work, what = source.choices(kinds, [weight for weight, _, _ in kinds])[0]
    return Once(work, moment, f"{work.__name__}: {what}")


def _rudeness(source: random.Random, sql: str) -> str:
    """Something no hook should do to the transaction it is a guest of."""
    return source.choice(
        (
            "SELECT count(*) FROM capture_take()",
            "ROLLBACK",
            "COMMIT",
            "SELECT 1 / 0",
            "ROLLBACK; BEGIN",
            f"ROLLBACK; BEGIN; {sql}; COMMIT",
        )
    )


def _query(r: random.Random, uid: Callable[[str], int]) -> str:
    """One statement: insert, update, move, delete, MM rows, ON CONFLICT, several writes in one."""
    table = r.choice(("tt_content", "tt_content", "pages", "sys_file_reference", "sys_category"))
    one, page, content = uid(table), uid("pages"), uid("tt_content")
    field = "header" if table == "tt_content" else "title"
    return r.choice(
        (
            f"UPDATE {table} SET pid = {page} WHERE uid = {one}",
            f"UPDATE {table} SET {field} = 'hook {r.randint(0, 99)}' WHERE uid = {one}",
            f"UPDATE {table} SET {field} = 'hook {r.randint(0, 99)}' WHERE pid = {page}",
            f"UPDATE {table} SET deleted = 1 WHERE uid = {one}",
            f"UPDATE {table} SET sorting = sorting + 1 WHERE pid = {page}"
            if table != "sys_file_reference"
            else f"UPDATE {table} SET sorting_foreign = 7 WHERE uid = {one}",
            f"DELETE FROM {table} WHERE uid = {one}",
            f"INSERT INTO tt_content (pid, header) VALUES ({page}, 'hook')",
            f"UPDATE sys_file_reference SET uid_foreign = {content} WHERE uid = {uid('sys_file_reference')}",
            (
                f"INSERT INTO {_MM} (uid_local, uid_foreign, tablenames, fieldname) "
                f"VALUES ({uid('sys_category')}, {content}, 'tt_content', 'categories')"
            ),
            f"DELETE FROM {_MM} WHERE uid_foreign = {content}",
            (
                f"INSERT INTO tt_content (uid, pid, header) VALUES ({content}, {page}, 'conflict') "
                "ON CONFLICT (uid) DO UPDATE SET header = excluded.header"
            ),
            (
                f"WITH gone AS (DELETE FROM tt_content WHERE uid = {content} RETURNING pid), "
                f"new AS (INSERT INTO tt_content (pid, header) SELECT pid, 'again' FROM gone RETURNING uid) "
                f"UPDATE pages SET title = 'cte {r.randint(0, 99)}' WHERE uid = {page}"
            ),
            f"UPDATE tt_content SET sys_language_uid = {r.choice((0, 1, -1))} WHERE uid = {content}",
        )
    )


def _entangled(r: random.Random, targets: Targets, outside: float) -> str:
    """What position alone does not tell: deletions, whole branches and parts of them, of unlisted rows, new originals."""
    table, one = targets.beyond(outside=outside)
    inner, page = targets.uid("tt_content", outside=0.0), targets.uid("pages", outside=outside / 4)
    other, content = targets.uid("tt_content", outside=outside), r.choice((one, inner))
    deleted = "deleted = 1" if table != "sys_file_metadata" else "title = ''"
    return r.choice(
        (
            f"DELETE FROM {table} WHERE uid = {one}",
            f"UPDATE {table} SET {deleted} WHERE uid = {one}",
            f"UPDATE tt_content SET deleted = 1 WHERE uid = {content} OR l18n_parent = {content}",
            f"UPDATE {table} SET {deleted} WHERE pid = {page}",
            (
                f"WITH gone AS (UPDATE pages SET deleted = 1 WHERE uid = {page} RETURNING uid) "
                "UPDATE tt_content SET deleted = 1 WHERE pid IN (SELECT uid FROM gone)"
            ),
            (
                f"WITH gone AS (DELETE FROM tt_content WHERE uid = {inner} RETURNING uid) "
                "UPDATE sys_file_reference SET deleted = 1 WHERE tablenames = 'tt_content' "
                "AND uid_foreign IN (SELECT uid FROM gone)"
            ),
            f"UPDATE tt_content SET sys_language_uid = 1, l18n_parent = {other} WHERE uid = {inner}",
            f"UPDATE tt_content SET l18n_parent = {other} WHERE uid = {inner}",
            f"UPDATE pages SET pid = {targets.uid('pages', outside=0.0)} WHERE uid = {page}",
        )
    )


class Once(DataHandlerHook):
    """Does its work once in a call, never inside of itself; made anew for each time a call is run.

    Args:
        work: what it does.
        moment: before the first datamap, after the first write or command, or after a datamap or cmdmap.
        name: for reports.
    """

    def __init__(self, work: Work, moment: str, name: str) -> None:
        self._work = work
        self._moment = moment
        self._done = False
        self.name = f"{moment} {name}"

    def again(self) -> Once:
        """The same hook, not used yet."""
        return Once(self._work, self._moment, self.name.partition(" ")[2])

    async def _at(self, moment: str, run: HandlerRun) -> None:
        if moment == self._moment and not self._done:
            self._done = True
            await self._work(run)

    async def before_start(self, run: HandlerRun) -> None:
        await self._at("start", run)

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        await self._at("write", run)

    async def post_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste: Fields | None, results: list[int]
    ) -> None:
        await self._at("write", run)

    async def after_all_operations(self, run: HandlerRun) -> None:
        await self._at("end", run)

    async def after_commands(self, run: HandlerRun) -> None:
        await self._at("end", run)
