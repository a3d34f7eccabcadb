from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from content_store.schema.loader import build_schema
from content_store.schema.migrate import grant_service, migrate_database
from content_store.schema.provision import DatabaseUrls, Passwords, prepare_database
from content_store.schema.roles import PrivilegedRoleError, refuse_privileged_role
from remit_harness.databases import Databases, database_url
from store_support.database import OWNER, SERVICE, prepare_test_database

if TYPE_CHECKING:
    Connection = asyncpg.Connection[Any]

SCHEMA = build_schema([("a", {"table": "tx_a", "columns": {"title": {"config": {"type": "input"}}}})])


@pytest.fixture
async def migrated(urls: DatabaseUrls) -> DatabaseUrls:
    await migrate_database(urls.owner, SCHEMA, SERVICE)
    return urls


async def test_the_services_role_is_accepted(migrated: DatabaseUrls, service: Connection) -> None:
    await refuse_privileged_role(service)


async def test_owner_and_superuser_are_refused(migrated: DatabaseUrls, owner: Connection, postgres: str) -> None:
    with pytest.raises(PrivilegedRoleError, match="owns the database"):
        await refuse_privileged_role(owner)
    database = await owner.fetchval("SELECT current_database()")
    superuser = await asyncpg.connect(database_url(postgres, database))
    with pytest.raises(PrivilegedRoleError, match="superuser"):
        await refuse_privileged_role(superuser)
    await superuser.close()


WAYS_AROUND = (
    (f"GRANT {OWNER} TO {{role}}", "member of the owner"),
    ("GRANT USAGE ON SCHEMA capture TO {role}; GRANT DELETE ON capture.captured_row TO {role}", "captured rows"),
    ("GRANT pg_write_all_data TO {role}", "captured rows"),
    ("ALTER ROLE {role} CREATEROLE", "may create roles"),
    ("ALTER ROLE {role} BYPASSRLS", "row security"),
    ("GRANT CREATE ON SCHEMA public TO {role}", "may create tables"),
    ("DO $$ BEGIN EXECUTE format('GRANT TEMP ON DATABASE %I TO {role}', current_database()); END $$", "temporary"),
)


async def test_a_way_around_the_capture_is_refused(migrated: DatabaseUrls, owner: Connection, postgres: str) -> None:
    database = await owner.fetchval("SELECT current_database()")
    superuser: Connection = await asyncpg.connect(database_url(postgres, database))
    for grant, reason in WAYS_AROUND:
        role = f"remit_test_{secrets.token_hex(4)}"
        await superuser.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
        try:
            await grant_service(owner, SCHEMA, role)
            other: Connection = await asyncpg.connect(database_url(postgres, database, role, "x"))
            await refuse_privileged_role(other)
            await superuser.execute(grant.format(role=role))
            with pytest.raises(PrivilegedRoleError, match=reason) as refused:
                await refuse_privileged_role(other)
            assert "\n" not in str(refused.value)
            await other.close()
        finally:
            await superuser.execute(f"DROP OWNED BY {role}")
            await superuser.execute(f"DROP ROLE {role}")
    await superuser.close()


async def test_rights_given_by_hand_are_taken_back(migrated: DatabaseUrls, owner: Connection) -> None:
    await owner.execute(f"GRANT UPDATE ON public.call_outcome TO {SERVICE}; GRANT TRUNCATE ON public.tx_a TO {SERVICE}")
    await migrate_database(migrated.owner, SCHEMA, SERVICE)
    rights = "SELECT has_column_privilege($1, 'public.call_outcome', 'taken', 'UPDATE'), has_table_privilege($1, 'public.tx_a', 'TRUNCATE')"
    assert tuple(await owner.fetchrow(rights, SERVICE) or ()) == (False, False)


async def test_everybody_else_may_nothing(migrated: DatabaseUrls, postgres: str, owner: Connection) -> None:
    role = f"remit_test_{secrets.token_hex(4)}"
    admin: Connection = await asyncpg.connect(postgres)
    await admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    try:
        database = await owner.fetchval("SELECT current_database()")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await asyncpg.connect(database_url(postgres, database, role, "x"))
        can = "SELECT has_function_privilege($1, 'public.capture_take(uuid)', 'EXECUTE')"
        assert await owner.fetchval(can, role) is False
        assert await owner.fetchval(can, SERVICE) is True
    finally:
        await admin.execute(f"DROP ROLE {role}")
        await admin.close()


async def test_preparing_twice_changes_only_the_passwords(databases: Databases, postgres: str) -> None:
    name, roles = f"prepare_{secrets.token_hex(4)}", [f"remit_test_{secrets.token_hex(4)}" for _ in range(2)]
    admin: Connection = await asyncpg.connect(postgres)
    try:
        first = await prepare_database(postgres, name, roles[0], roles[1], Passwords("a'1", "b"))
        await migrate_database(first.owner, SCHEMA, roles[1])
        second = await prepare_database(postgres, name, roles[0], roles[1], Passwords("a@/2", "b%2"))
        connection: Connection = await asyncpg.connect(second.service)
        assert await connection.fetchval("SELECT count(*) FROM public.tx_a") == 0
        await refuse_privileged_role(connection)
        await connection.close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(first.service)
    finally:
        await admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        for role in roles:
            await admin.execute(f"DROP ROLE IF EXISTS {role}")
        await admin.close()


async def test_a_copy_of_a_migrated_database_serves(
    databases: Databases, postgres: str, migrated: DatabaseUrls
) -> None:
    template = migrated.owner.rpartition("/")[2]
    copy = await prepare_test_database(await databases.create("copy", template=template), server_url=postgres)
    connection: Connection = await asyncpg.connect(copy.service)
    await refuse_privileged_role(connection)
    await connection.close()
