"""Idempotency keys and the inbox: what came once counts once."""

from __future__ import annotations

import asyncio

import pytest
from httpx2 import ASGITransport, AsyncClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from service_kit.app import create_app
from service_kit.database import Database
from service_kit.dependencies import WriteSessionDependency
from service_kit.idempotency import Idempotency, IdempotencyKeyHeader
from service_kit.ids import uuid7
from service_kit.inbox import Inbox, Verdict
from service_kit.problems import BadRequestError
from service_kit.routing import Router
from service_kit.settings import ServiceSettings
from sqlalchemy import text


class Created(BaseModel):
    note_id: int = Field(alias="noteId")


class Wanted(BaseModel):
    body: str
    fail: bool = False


@pytest.fixture
def http(database: Database, url: str) -> AsyncClient:
    router = Router(prefix="/v1")
    idempotency = Idempotency()

    @router.post("/notes/{owner}")
    async def create(owner: str, wanted: Wanted, key: IdempotencyKeyHeader, session: WriteSessionDependency) -> Created:
        async def work() -> Created:
            row = await session.execute(
                text("INSERT INTO note (body) VALUES (:body || gen_random_uuid()) RETURNING id"), {"body": wanted.body}
            )
            if wanted.fail:
                raise BadRequestError
            return Created(noteId=row.scalar_one())

        return await idempotency.run_once(session, key, owner, Created, work)

    app = create_app("notes", ServiceSettings(database_url=url), [router], state={"database": database})
    return AsyncClient(transport=ASGITransport(app), base_url="http://test")


async def notes(database: Database) -> int:
    async with database.read() as session:
        return int((await session.execute(text("SELECT count(*) FROM note"))).scalar_one())


async def test_the_same_request_twice_has_one_effect_and_one_answer(http: AsyncClient, database: Database) -> None:
    headers = {"Idempotency-Key": "k1"}
    answers = [await http.post("/v1/notes/a", json={"body": "x"}, headers=headers) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert await notes(database) == 1
    # The controls: without a key, with another, and of another owner it is done again.
    await http.post("/v1/notes/a", json={"body": "x"})
    await http.post("/v1/notes/a", json={"body": "x"}, headers={"Idempotency-Key": "k2"})
    await http.post("/v1/notes/b", json={"body": "x"}, headers=headers)
    assert await notes(database) == 4


async def test_the_same_key_for_another_request_is_a_conflict(http: AsyncClient, database: Database) -> None:
    headers = {"Idempotency-Key": "k1"}
    await http.post("/v1/notes/a", json={"body": "x"}, headers=headers)
    other = await http.post("/v1/notes/a", json={"body": "y"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    assert await notes(database) == 1


async def test_a_failed_request_may_be_repeated(http: AsyncClient, database: Database) -> None:
    headers = {"Idempotency-Key": "k1"}
    for _ in range(2):
        failed = await http.post("/v1/notes/a", json={"body": "x", "fail": True}, headers=headers)
        assert failed.json()["code"] == "bad_request"
    assert await notes(database) == 0


async def test_many_at_once_have_one_effect(http: AsyncClient, database: Database) -> None:
    async def send() -> str:
        return (await http.post("/v1/notes/a", json={"body": "x"}, headers={"Idempotency-Key": "k"})).text

    assert len(set(await asyncio.gather(*(send() for _ in range(8))))) == 1
    assert await notes(database) == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
async def test_a_key_that_is_no_key_is_refused(http: AsyncClient, database: Database, key: str) -> None:
    refused = await http.post("/v1/notes/a", json={"body": "x"}, headers={"Idempotency-Key": key})
    assert (refused.status_code, refused.json()["code"]) == (400, "idempotency_key_invalid")
    assert await notes(database) == 0


async def test_old_keys_are_forgotten(http: AsyncClient, database: Database) -> None:
    await http.post("/v1/notes/a", json={"body": "x"}, headers={"Idempotency-Key": "k"})
    async with database.unit_of_work() as session:
        assert await Idempotency().purge(session, 3600) == 0
        assert await Idempotency().purge(session, 0) == 1


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.permutations([1, 1, 2, 2, 3, 4, 4]))
async def test_whatever_the_order_each_event_counts_once(database: Database, deliveries: list[int]) -> None:
    inbox, stream = Inbox("kit"), str(uuid7())
    ids = {number: uuid7() for number in range(1, 5)}
    handled: list[int] = []

    async def deliver(number: int) -> None:
        async with database.unit_of_work() as session:
            accepted = await inbox.accept(session, ids[number], stream, number)
            assert accepted.last_seq == len(handled)
            if accepted.verdict is Verdict.NEW:
                handled.append(number)
            assert (accepted.verdict is Verdict.GAP) == (number > accepted.last_seq + 1)

    for number in deliveries:
        await deliver(number)
    for number in range(1, 5):
        await deliver(number)
    assert handled == [1, 2, 3, 4]
    async with database.read() as session:
        assert await inbox.last_seq(session, stream) == 4


async def test_what_was_rolled_back_is_not_remembered(database: Database) -> None:
    inbox, event_id = Inbox("kit"), uuid7()

    async def fail() -> None:
        async with database.unit_of_work() as session:
            assert (await inbox.accept(session, event_id, "s", 1)).verdict is Verdict.NEW
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with database.unit_of_work() as session:
        assert (await inbox.accept(session, event_id, "s", 1)).verdict is Verdict.NEW


async def test_consumers_do_not_share_their_memory_and_two_at_once_count_once(database: Database) -> None:
    event_id = uuid7()
    handled: list[str] = []

    async def deliver(consumer: str) -> None:
        async with database.unit_of_work() as session:
            if (await Inbox(consumer).accept(session, event_id, "s", 1)).verdict is Verdict.NEW:
                await asyncio.sleep(0.01)
                handled.append(consumer)

    await asyncio.gather(*(deliver(consumer) for consumer in ("a", "b") for _ in range(3)))
    assert sorted(handled) == ["a", "b"]


async def test_a_late_joiner_starts_anywhere_and_a_refill_goes_on(database: Database) -> None:
    inbox = Inbox("kit")
    async with database.unit_of_work() as session:
        assert (await inbox.accept(session, uuid7(), "s", 5)).verdict is Verdict.GAP
        assert (await inbox.accept(session, uuid7(), "s", 5, any_start=True)).verdict is Verdict.NEW
        assert (await inbox.accept(session, uuid7(), "s", 7, any_start=True)).verdict is Verdict.GAP
        await inbox.advance(session, "s", 6)
        assert (await inbox.accept(session, uuid7(), "s", 7)).verdict is Verdict.NEW
        await inbox.advance(session, "s", 3)
        assert await inbox.last_seq(session, "s") == 7
        assert await inbox.purge(session, 0) == 2
        assert (await inbox.accept(session, uuid7(), "s", 7)).verdict is Verdict.SEEN
