from __future__ import annotations

import asyncio
import random
from collections import defaultdict

import asyncpg
import pytest
from pydantic import BaseModel, Field
from service_kit.database import Database
from service_kit.ids import uuid7
from service_kit.outbox import EventTooLargeError, Outbox, OutboxEvent, outbox_ddl, outbox_grants
from service_kit.pool import create_pool
from service_kit.statements import StatementCounter
from sqlalchemy import text


def event(stream: str, data: object = None) -> OutboxEvent:
    return OutboxEvent(topic="kit", stream=stream, type="kit.t.v1", source="/kit", data={"n": data})


@pytest.mark.req("T-70")
async def test_sequences_are_gapless_per_stream_and_in_the_order_given(database: Database) -> None:
    outbox = Outbox()
    async with database.unit_of_work() as session:
        stored = await outbox.append(session, [event("b"), event("a"), event("b"), event("a"), event("c")])
    assert [(one.stream, one.sequence) for one in stored] == [("b", 1), ("a", 1), ("b", 2), ("a", 2), ("c", 1)]
    async with database.unit_of_work() as session:
        stored = await outbox.append(session, [event("c"), event("b")])
    assert [(one.stream, one.sequence) for one in stored] == [("c", 2), ("b", 3)]


async def test_both_ways_in_write_the_same_rows(database: Database, url: str) -> None:
    class Data(BaseModel):
        live_uid: int = Field(alias="liveUid")
        word: str

    outbox = Outbox()
    data = Data(liveUid=3, word="ü\\u0000 is escaped text")
    events = [
        OutboxEvent(
            topic="kit", stream="s", key="k", type="t", source="/s", data=data, subject="x", extensions={"a": "1"}
        )
        for _ in range(2)
    ]
    async with database.unit_of_work() as session:
        await outbox.append(session, events[:1])
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            stored = await outbox.append_raw(connection, events[1:])
        assert stored[0].sequence == 2
        rows = await connection.fetch(
            "SELECT topic, stream, key, type, source, subject, extensions::text, data::text FROM outbox ORDER BY seq"
        )
    finally:
        await connection.close()
    assert rows[0] == rows[1]
    assert Data.model_validate_json(rows[0]["data"]) == data
    assert rows[0]["key"] == "k"


async def test_any_number_of_events_costs_one_statement(url: str) -> None:
    counter = StatementCounter()
    pool = await create_pool(url, application_name="kit", max_size=1, counter=counter)
    try:
        async with pool.acquire() as connection:
            # The first time a connection meets array types, the driver asks the server about them.
            await Outbox().append_raw(connection, [event("s")])
            for number in (1, 50):
                with counter.measure():
                    await Outbox().append_raw(connection, [event(f"s{one % 7}") for one in range(number)])
                assert counter.count == 1
    finally:
        await pool.close()


async def test_what_is_rolled_back_leaves_no_gap(database: Database) -> None:
    outbox = Outbox()

    async def fail() -> None:
        async with database.unit_of_work() as session:
            await outbox.append(session, [event("s")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with database.unit_of_work() as session:
        assert (await outbox.append(session, [event("s")]))[0].sequence == 1


@pytest.mark.req("T-70", "T-71")
async def test_concurrent_transactions_neither_deadlock_nor_leave_gaps(url: str) -> None:
    outbox = Outbox()
    pool = await create_pool(url, application_name="kit", max_size=8)
    chance = random.Random(7)  # noqa: S311 - a test's dice
    streams = [f"s{number}" for number in range(6)]
    plans = [chance.sample(streams, 4) for _ in range(120)]
    doomed = {number for number in range(120) if number % 7 == 0}

    async def write(number: int) -> None:
        async with pool.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            await outbox.append_raw(connection, [event(stream, number) for stream in plans[number]])
            await asyncio.sleep(0)
            await (transaction.rollback() if number in doomed else transaction.commit())

    try:
        await asyncio.gather(*(write(number) for number in range(120)))
        rows = await pool.fetch("SELECT stream, seq, created_at FROM outbox ORDER BY stream, seq")
    finally:
        await pool.close()
    by_stream: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        by_stream[row["stream"]].append(row["seq"])
    wanted = sum(4 for number in range(120) if number not in doomed)
    assert sum(map(len, by_stream.values())) == wanted
    for numbers in by_stream.values():
        assert numbers == list(range(1, len(numbers) + 1))


async def test_a_second_writer_of_a_stream_waits_and_others_do_not(url: str) -> None:
    outbox = Outbox()
    first, second, third = [await asyncpg.connect(url) for _ in range(3)]
    try:
        transaction = first.transaction()
        await transaction.start()
        await outbox.append_raw(first, [event("s", "first")])

        async def write() -> int:
            async with second.transaction():
                return (await outbox.append_raw(second, [event("s", "second")]))[0].sequence

        waiting = asyncio.create_task(write())
        async with third.transaction():
            assert (await outbox.append_raw(third, [event("other")]))[0].sequence == 1
        assert not waiting.done()
        await transaction.commit()
        assert await waiting == 2
    finally:
        for connection in (first, second, third):
            await connection.close()


async def test_an_event_no_broker_takes_is_refused_before_the_commit(database: Database) -> None:
    outbox = Outbox(max_event_bytes=100)

    async def write() -> None:
        async with database.unit_of_work() as session:
            await session.execute(text("INSERT INTO note (body) VALUES ('a')"))
            await outbox.append(session, [event("s", "x" * 200)])

    with pytest.raises(EventTooLargeError):
        await write()
    async with database.read() as session:
        assert (await session.execute(text("SELECT count(*) FROM note"))).scalar_one() == 0


async def test_the_granted_rights_are_enough_to_write(url: str) -> None:
    role = f"kit_{uuid7().hex[-12:]}"
    admin = await asyncpg.connect(url)
    try:
        await admin.execute("CREATE SCHEMA events")
        await admin.execute(outbox_ddl("events"))
        await admin.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA events TO {role}")
        await admin.execute(f"SET ROLE {role}")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await Outbox("events").append_raw(admin, [event("s")])
        await admin.execute("RESET ROLE")
        await admin.execute(outbox_grants(role, "events"))
        await admin.execute(f"SET ROLE {role}")
        assert (await Outbox("events").append_raw(admin, [event("s")]))[0].sequence == 1
        await admin.execute("RESET ROLE")
        await admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
    finally:
        await admin.close()


@pytest.mark.parametrize("name", ["", "a b", "public; DROP TABLE note", 'a"b', "A", "x" * 64])
def test_names_in_sql_are_plain(name: str) -> None:
    with pytest.raises(ValueError, match="SQL name"):
        Outbox(name)
