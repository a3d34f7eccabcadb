"""Makes a database with its two roles: an owner that migrates, and a service that owns nothing (DESIGN 6, CALLS 2)."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

from content_store.schema.ddl import quote_identifier

_ROLE_ATTEMPTS = 8
_PLAIN_ROLE = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"


@dataclass(frozen=True)
class Passwords:
    """Passwords of the two roles."""

    owner: str
    service: str


@dataclass(frozen=True)
class DatabaseUrls:
    """Where migrations and the service connect to."""

    owner: str
    service: str


async def prepare_database(
    admin_url: str, database: str, owner: str, service: str, passwords: Passwords
) -> DatabaseUrls:
    """Create roles and database where they are missing, set passwords and rights. Safe to repeat.

    Args:
        admin_url: of a superuser, any database of the server.
        database: name of the store's database.
        owner: role that owns the database and runs ``content-store migrate``.
        service: role the service runs as.
        passwords: set on every call.
    """
    admin = await asyncpg.connect(admin_url)
    try:
        # Roles belong to the whole server; two who change one at once would both be refused.
        await admin.execute("SELECT pg_advisory_lock(hashtextextended('content-store provision', 0))")
        await _ensure_role(admin, owner, passwords.owner)
        await _ensure_role(admin, service, passwords.service)
        if not await admin.fetchval("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", database):
            await admin.execute(
                f"CREATE DATABASE {quote_identifier(database)} OWNER {quote_identifier(owner)} "
                "TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
            )
        base, owner_name, service_name = (quote_identifier(name) for name in (database, owner, service))
        await admin.execute(
            f"ALTER DATABASE {base} OWNER TO {owner_name}; REVOKE ALL ON DATABASE {base} FROM PUBLIC; "
            f"GRANT CONNECT ON DATABASE {base} TO {service_name}"
        )
    finally:
        await admin.close()
    inside = await asyncpg.connect(_with(admin_url, database))
    try:
        await inside.execute(f"ALTER SCHEMA public OWNER TO {owner_name}; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    finally:
        await inside.close()
    return DatabaseUrls(
        _with(admin_url, database, owner, passwords.owner), _with(admin_url, database, service, passwords.service)
    )


def random_passwords() -> Passwords:
    """Two passwords nobody has to remember."""
    return Passwords(secrets.token_urlsafe(24), secrets.token_urlsafe(24))


async def _ensure_role(admin: asyncpg.Connection[Any], role: str, password: str) -> None:
    name = quote_identifier(role)
    literal = await admin.fetchval("SELECT quote_literal($1)", password)
    verb = (
        "ALTER" if await admin.fetchval("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role) else "CREATE"
    )
    for attempt in range(_ROLE_ATTEMPTS):
        try:
            await admin.execute(f"{verb} ROLE {name} {_PLAIN_ROLE} PASSWORD {literal}")
            return
        except (asyncpg.InternalServerError, asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
            # Roles belong to the server, advisory locks to a database: somebody in another database was quicker.
            if attempt == _ROLE_ATTEMPTS - 1:
                raise
            verb = "ALTER"
            await asyncio.sleep(0.05 * (attempt + 1))


def _with(url: str, database: str, user: str | None = None, password: str = "") -> str:
    parts = urlsplit(url)
    netloc = parts.netloc
    if user is not None:
        netloc = f"{quote(user, safe='')}:{quote(password, safe='')}@{netloc.rpartition('@')[2]}"
    return urlunsplit((parts.scheme, netloc, f"/{quote(database, safe='')}", parts.query, ""))
