from __future__ import annotations

import asyncpg
import pytest
from content_store.auth.commands import UserAdministration, UserCommandError
from content_store.schema.model import Schema
from service_kit.pool import plain_url
from store_support.app import StoreUnderTest


async def login(store: StoreUnderTest, username: str, password: str) -> int:
    body = {"username": username, "password": password}
    return (await store.client.post("/v1/auth/login", json=body)).status_code


async def test_create_list_and_change_a_password(store: StoreUnderTest, schema: Schema) -> None:
    connection = await asyncpg.connect(plain_url(store.settings.database_url.get_secret_value()))
    try:
        users = UserAdministration(connection, schema)
        uid = await users.create("Boss", "long enough", admin=True, name="The Boss")
        assert [(u.uid, u.username, u.name, u.admin, u.disabled) for u in await users.list()] == [
            (uid, "boss", "The Boss", True, False)
        ]
        assert await login(store, "boss", "long enough") == 200
        headers = await store.token(uid)
        assert (await store.client.get("/v1/auth/me", headers=headers)).json()["admin"] is True
        stored = await store.owner.fetchval("SELECT password FROM be_users WHERE uid = $1", uid)
        assert stored.startswith("$argon2id$")

        assert await users.set_password("boss", "another one") == uid
        assert await login(store, "boss", "long enough") == 401
        assert await login(store, "boss", "another one") == 200
        # Whoever was logged in with the old password is not any more.
        assert (await store.client.get("/v1/auth/me", headers=headers)).status_code == 401

        history = await store.owner.fetch("SELECT history_data::text AS data FROM sys_history")
        assert len(history) == 2
        assert not [row for row in history if "argon2" in row["data"] or "long enough" in row["data"]]
        actions = await store.owner.fetch("SELECT data::jsonb ->> 'action' AS action FROM outbox ORDER BY seq")
        assert [row["action"] for row in actions] == ["created", "updated"]
        assert await store.owner.fetchval("SELECT count(*) FROM capture.captured_row") == 0
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("username", "password", "message"),
    [("boss", "long enough", "taken"), ("", "long enough", "needed"), ("new", "short", "8 to 1024")],
)
async def test_what_is_refused(
    store: StoreUnderTest, schema: Schema, username: str, password: str, message: str
) -> None:
    await store.rows.user(1, "boss")
    connection = await asyncpg.connect(plain_url(store.settings.database_url.get_secret_value()))
    try:
        users = UserAdministration(connection, schema)
        with pytest.raises(UserCommandError, match=message):
            await users.create(username, password)
        with pytest.raises(UserCommandError, match="no user"):
            await users.set_password("nobody", "long enough")
        assert await store.owner.fetchval("SELECT count(*) FROM be_users") == 1
    finally:
        await connection.close()
