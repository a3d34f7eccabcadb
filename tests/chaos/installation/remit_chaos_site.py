"""A hook that does what a bad one could: it acts on a header of ``hostile WORD UID``, where UID is a foreign element."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import asyncpg
from content_store.datahandler.hooks import DataHandlerHook

if TYPE_CHECKING:
    from content_store.datahandler.hooks import Fields, Status
    from content_store.datahandler.run import HandlerRun

FOREIGN = "UPDATE public.tt_content SET header = 'hostile was here' WHERE uid = $1"
VERDICT = "SET verdict = 'committed'"


async def write(connection: Any, uid: int) -> None:
    await connection.execute(FOREIGN, uid)


async def commit(connection: Any, uid: int) -> None:
    await write(connection, uid)
    await connection.execute("COMMIT")


async def restart(connection: Any, uid: int) -> None:
    await write(connection, uid)
    await connection.execute("COMMIT")
    await connection.execute("BEGIN")


async def restart_clean(connection: Any, uid: int) -> None:
    """Ends the call's transaction and writes in one of its own, which it leaves open."""
    await connection.execute("ROLLBACK")
    await connection.execute("BEGIN")
    await write(connection, uid)


async def chain(connection: Any, uid: int) -> None:
    await write(connection, uid)
    await connection.execute("COMMIT AND CHAIN")


async def take(connection: Any, uid: int) -> None:
    await write(connection, uid)
    await connection.fetch("SELECT count(*) FROM public.capture_take()")


async def verdict(connection: Any, uid: int) -> None:
    await write(connection, uid)
    await connection.execute("UPDATE public.call_outcome SET verdict = 'committed', judged = 2 WHERE verdict IS NULL")


async def outcome(connection: Any, uid: int) -> None:
    """Takes the outcome row away, so that nothing asks for a verdict."""
    await write(connection, uid)
    await connection.execute("DELETE FROM public.call_outcome WHERE verdict IS NULL")


async def temporary(connection: Any, _uid: int) -> None:
    await connection.execute("CREATE TEMPORARY TABLE tt_content (uid bigint, header text)")


async def triggers(connection: Any, uid: int) -> None:
    await connection.execute("SET LOCAL session_replication_role = replica")
    await write(connection, uid)


async def owner(connection: Any, uid: int) -> None:
    """Tries to take the trigger off, as only the owner could."""
    await connection.execute("ALTER TABLE public.tt_content DISABLE TRIGGER ALL")
    await write(connection, uid)


async def late(connection: Any, uid: int) -> None:
    """Writes right behind the verdict, before the commit."""
    _after_verdict(connection, lambda: write(connection, uid))


async def late_immediate(connection: Any, uid: int) -> None:
    """Has the deferred checks made right behind the verdict, and writes once they are behind it."""

    async def work() -> None:
        await connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        await write(connection, uid)

    _after_verdict(connection, work)


def _after_verdict(connection: Any, work: Callable[[], Awaitable[None]]) -> None:
    raw = connection._con if hasattr(connection, "_con") else connection
    kind = type(raw)
    original = kind.fetch

    async def fetch(self: Any, query: str, *args: Any, **more: Any) -> Any:
        answer = await original(self, query, *args, **more)
        if self is raw and VERDICT in query:
            kind.fetch = original
            with contextlib.suppress(asyncpg.PostgresError):
                await work()
        return answer

    kind.fetch = fetch


DEEDS: dict[str, Callable[[Any, int], Awaitable[None]]] = {
    "write": write,
    "commit": commit,
    "restart": restart,
    "restart_clean": restart_clean,
    "chain": chain,
    "take": take,
    "verdict": verdict,
    "outcome": outcome,
    "temporary": temporary,
    "triggers": triggers,
    "owner": owner,
    "late": late,
    "late_immediate": late_immediate,
}


class HostileHook(DataHandlerHook):
    """Swallows what the database says to it, as a bad hook would."""

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        words = str(fields.get("header", "")).split()
        if run.ctx.rehearsal or len(words) != 3 or words[0] != "hostile":
            return
        with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError):
            await DEEDS[words[1]](run.ctx.gateway.connection, int(words[2]))
