"""What the database insists on before a call's transaction may commit (CALLS 2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg
import pytest
from content_store.capture.errors import (
    CaptureError,
    JudgedRowsDifferError,
    MissingVerdictError,
    OutcomeFixedError,
    UnknownCallError,
    UntakenRowsError,
    WriteAfterVerdictError,
    capture_error,
)
from content_store.capture.reader import take_capture
from service_kit.ids import uuid7

if TYPE_CHECKING:
    Connection = asyncpg.Connection[Any]

pytestmark = pytest.mark.req("S-53", "S-67")

OPEN = "INSERT INTO public.call_outcome (call_id, run_id, epoch, request_hash) VALUES ($1, $1, 1, 'h')"
VERDICT = "UPDATE public.call_outcome SET verdict = 'committed', judged = $2 WHERE call_id = $1"
WRITE = "UPDATE public.pages SET title = title || 'x' WHERE uid = 1"


@asynccontextmanager
async def refused(kind: type[CaptureError]) -> AsyncIterator[None]:
    with pytest.raises(asyncpg.PostgresError) as raised:
        yield
    assert isinstance(capture_error(raised.value), kind)


async def open_call(connection: Connection) -> UUID:
    call = uuid7()
    await connection.execute(OPEN, call)
    return call


async def title(connection: Connection) -> str:
    found: str = await connection.fetchval("SELECT title FROM public.pages WHERE uid = 1")
    return found


@pytest.fixture(autouse=True)
async def page(owner: Connection) -> None:
    async with owner.transaction():
        await owner.execute("INSERT INTO public.pages (uid, title) VALUES (1, 'p')")
        await take_capture(owner, None)


async def test_a_judged_call_commits(service: Connection) -> None:
    async with service.transaction():
        call = await open_call(service)
        await service.execute(WRITE)
        rows = await take_capture(service, call)
        await service.execute(VERDICT, call, len(rows))
    assert await title(service) == "px"
    assert await service.fetchval("SELECT taken FROM public.call_outcome") == 1


async def test_no_commit_without_a_verdict(service: Connection) -> None:
    async with refused(MissingVerdictError), service.transaction():
        call = await open_call(service)
        await service.execute(WRITE)
        await take_capture(service, call)
    assert await title(service) == "p"


async def test_a_hook_that_sends_commit_makes_the_call_fail(service: Connection) -> None:
    transaction = service.transaction()
    await transaction.start()
    await open_call(service)
    await service.execute(WRITE)
    async with refused(MissingVerdictError):
        await service.execute("COMMIT")
    assert await title(service) == "p"


async def test_a_hook_that_begins_anew_is_noticed_when_the_rows_are_taken(service: Connection) -> None:
    transaction = service.transaction()
    await transaction.start()
    call = await open_call(service)
    await service.execute("ROLLBACK; BEGIN")
    await service.execute(WRITE)
    with pytest.raises(UnknownCallError):
        await take_capture(service, call)
    await service.execute("ROLLBACK")


async def test_no_commit_with_rows_nobody_took(service: Connection) -> None:
    async with refused(UntakenRowsError), service.transaction():
        call = await open_call(service)
        await service.execute(WRITE)
        await service.execute(VERDICT, call, 0)
    assert await title(service) == "p"


@pytest.mark.parametrize("name_it", [True, False])
async def test_rows_taken_by_a_hook_are_missing_in_the_verdict(service: Connection, name_it: bool) -> None:
    async with refused(JudgedRowsDifferError), service.transaction():
        call = await open_call(service)
        await service.execute(WRITE)
        await take_capture(service, call if name_it else None)
        judged = await take_capture(service, call)
        await service.execute(VERDICT, call, len(judged))
    assert await title(service) == "p"


async def test_rows_taken_in_a_savepoint_that_is_undone_are_there_again(service: Connection) -> None:
    async with service.transaction():
        call = await open_call(service)
        await service.execute(WRITE)
        savepoint = service.transaction()
        await savepoint.start()
        await take_capture(service, call)
        await savepoint.rollback()
        rows = await take_capture(service, call)
        await service.execute(VERDICT, call, len(rows))
    assert await title(service) == "px"


@pytest.mark.parametrize("first", ["SELECT 1", "SET CONSTRAINTS ALL IMMEDIATE"])
async def test_a_write_after_the_verdict_is_refused(service: Connection, first: str) -> None:
    async with refused(WriteAfterVerdictError), service.transaction():
        call = await open_call(service)
        await service.execute(VERDICT, call, 0)
        await service.execute(first)
        await service.execute(WRITE)
    assert await title(service) == "p"


async def test_constraints_cannot_be_checked_away_before_the_verdict(service: Connection) -> None:
    async with refused(MissingVerdictError), service.transaction():
        await open_call(service)
        await service.execute("SET CONSTRAINTS ALL IMMEDIATE")


async def test_a_verdict_stands(service: Connection) -> None:
    async with service.transaction():
        call = await open_call(service)
        await service.execute(VERDICT, call, 0)
    async with refused(OutcomeFixedError):
        await service.execute("UPDATE public.call_outcome SET verdict = 'rolled_back'")
    async with refused(OutcomeFixedError), service.transaction():
        call = await open_call(service)
        await service.execute(VERDICT, call, 0)
        await service.execute(VERDICT, call, 5)


async def test_a_call_marked_as_not_done_wrote_nothing(service: Connection) -> None:
    mark = (
        "INSERT INTO public.call_outcome (call_id, run_id, epoch, request_hash, verdict, judged) "
        "VALUES ($1, $1, 1, '', 'rolled_back', 0)"
    )
    await service.execute(mark, uuid7())
    async with refused(WriteAfterVerdictError), service.transaction():
        await service.execute(mark, uuid7())
        await service.execute(WRITE)


@pytest.mark.req("S-67")
async def test_no_commit_without_a_call_of_rows_nobody_took(service: Connection, owner: Connection) -> None:
    for statements in ((WRITE,), ("BEGIN", WRITE, "COMMIT"), ("BEGIN", WRITE, WRITE, "SAVEPOINT s", WRITE, "COMMIT")):
        async with refused(UntakenRowsError):
            for statement in statements:
                await service.execute(statement)
        assert await title(service) == "p"
    async with refused(UntakenRowsError), service.transaction():
        await service.execute(WRITE)
        await service.execute("SET CONSTRAINTS ALL IMMEDIATE")
    # Who takes them may commit, also of several statements and with some of it undone in between.
    async with service.transaction():
        await service.execute(WRITE)
        await service.execute("SAVEPOINT s")
        await service.execute(WRITE)
        await service.execute("ROLLBACK TO SAVEPOINT s")
        assert [row.uid for row in await take_capture(service, None)] == [1]
    assert await title(service) == "px"
    # Control: the owner is free, and its rows wait for the sweeper.
    await owner.execute(WRITE)
    assert await title(service) == "pxx"
    assert await owner.fetchval("SELECT count(*) FROM capture.captured_row") == 1
    assert await owner.fetchval("SELECT count(*) FROM capture.transaction_without_call") == 0


FORBIDDEN = (
    "UPDATE public.call_outcome SET taken = 0",
    "UPDATE public.call_outcome SET transaction_id = '3'",
    "UPDATE public.call_outcome SET begun_at = now()",
    "INSERT INTO public.call_outcome (taken) VALUES (7)",
    "DELETE FROM public.call_outcome",
    "TRUNCATE public.call_outcome",
    "ALTER TABLE public.call_outcome DISABLE TRIGGER require_verdict",
    "ALTER TABLE public.pages DISABLE TRIGGER remit_capture_update",
    "DROP TRIGGER remit_capture_update ON public.pages",
    "CREATE TRIGGER other BEFORE UPDATE ON public.pages FOR EACH ROW EXECUTE FUNCTION capture.refuse_truncate()",
    "SET session_replication_role = replica",
    "SELECT * FROM capture.captured_row",
    "DELETE FROM capture.captured_row",
    "INSERT INTO capture.captured_row (table_id) VALUES (1)",
    "UPDATE public.pages SET uid = 77",
    "INSERT INTO public.pages (uid) VALUES (1) ON CONFLICT (uid) DO UPDATE SET uid = 78",
    "TRUNCATE public.pages",
    "CREATE TEMPORARY TABLE pages (uid bigint)",
    "CREATE TABLE public.shadow (uid bigint)",
    "CREATE FUNCTION public.shadow() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "UPDATE public.schema_state SET schema_hash = ''",
)


async def test_the_service_role_may_not(service: Connection) -> None:
    for statement in FORBIDDEN:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await service.execute(statement)


async def test_the_service_role_may_write_records(service: Connection) -> None:
    """The control of the list above: the ordinary statements work."""
    async with service.transaction():
        uid = await service.fetchval("INSERT INTO public.pages (uid, title) VALUES (5, 'n') RETURNING uid")
        await service.execute("SELECT FROM public.pages WHERE uid = $1 FOR UPDATE", uid)
        await service.execute("UPDATE public.pages SET title = 'm', pid = 1 WHERE uid = $1", uid)
        await service.execute("DELETE FROM public.pages WHERE uid = $1", uid)
        assert len(await take_capture(service, None)) == 3
