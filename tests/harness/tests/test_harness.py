"""The harness itself: servers come up once, databases come and go."""

from __future__ import annotations

import asyncpg
import pytest
from remit_harness.databases import Databases, checked_name, database_url
from remit_harness.servers import BrokerServer
from remit_local.brokers.ready import is_ready


async def test_a_database_is_a_copy_of_its_template_and_is_dropped(databases: Databases, postgres: str) -> None:
    async def build(url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TABLE harness_mark (n int)")
        await connection.close()

    template = await databases.template("harness", build)
    url = await databases.create("harness", template=template)
    connection = await asyncpg.connect(url)
    assert await connection.fetchval("SELECT count(*) FROM harness_mark") == 0
    name = await connection.fetchval("SELECT current_database()")
    await connection.close()
    await databases.drop()
    await databases.drop_template("harness")
    admin = await asyncpg.connect(postgres)
    assert await admin.fetchval("SELECT count(*) FROM pg_database WHERE datname = $1", name) == 0
    await admin.close()


def test_the_broker_answers(broker: BrokerServer) -> None:
    assert is_ready(broker.address)
    assert not is_ready("127.0.0.1:1")


def test_a_database_name_is_no_place_for_sql(postgres: str) -> None:
    with pytest.raises(ValueError, match="not a database name"):
        checked_name('x"; DROP DATABASE postgres; --')
    assert database_url("postgresql://a:b@h:1/x", "y", "u", "p") == "postgresql://u:p@h:1/y"
