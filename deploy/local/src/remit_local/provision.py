"""Databases, roles and keys of a stack."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg
from content_store.schema.provision import Passwords, prepare_database

SERVICES = ("content-store", "agent-runtime", "chat-gateway")


@dataclass(frozen=True)
class DatabaseNames:
    """Databases and roles of a stack; ``prefix`` keeps several stacks on one server apart."""

    store: str
    runtime: str
    gateway: str
    store_owner: str
    store_service: str
    runtime_role: str
    gateway_role: str

    @classmethod
    def with_prefix(cls, prefix: str, roles: str | None = None) -> DatabaseNames:
        """Names that begin with ``prefix``; roles with ``roles`` where that differs (they belong to the whole server)."""
        role = roles or prefix
        return cls(
            f"{prefix}_store", f"{prefix}_runtime", f"{prefix}_gateway",
            f"{role}_store_owner", f"{role}_store", f"{role}_runtime", f"{role}_gateway",
        )  # fmt: skip

    @property
    def databases(self) -> tuple[str, str, str]:
        """The three databases."""
        return (self.store, self.runtime, self.gateway)

    @property
    def roles(self) -> tuple[str, ...]:
        """All roles."""
        return (self.store_owner, self.store_service, self.runtime_role, self.gateway_role)


@dataclass(frozen=True)
class DatabaseAddresses:
    """Where each service connects to."""

    store: str
    store_owner: str
    runtime: str
    gateway: str


async def provision(admin_url: str, names: DatabaseNames, secrets: dict[str, str]) -> DatabaseAddresses:
    """Make roles and databases where they are missing and set the passwords. Safe to repeat.

    Args:
        admin_url: a superuser's, without a driver name.
        names: of databases and roles.
        secrets: ``store_owner``, ``store_service``, ``runtime``, ``gateway``.
    """
    store = await prepare_database(
        admin_url,
        names.store,
        names.store_owner,
        names.store_service,
        Passwords(secrets["store_owner"], secrets["store_service"]),
    )
    admin = await asyncpg.connect(admin_url)
    try:
        for database, role, secret in (
            (names.runtime, names.runtime_role, secrets["runtime"]),
            (names.gateway, names.gateway_role, secrets["gateway"]),
        ):
            await _own_database(admin, admin_url, database, role, secret)
    finally:
        await admin.close()
    return DatabaseAddresses(
        store=store.service,
        store_owner=store.owner,
        runtime=role_url(admin_url, names.runtime, names.runtime_role, secrets["runtime"]),
        gateway=role_url(admin_url, names.gateway, names.gateway_role, secrets["gateway"]),
    )


async def _own_database(
    admin: asyncpg.Connection[Any], admin_url: str, database: str, role: str, password: str
) -> None:
    known = await admin.fetchval("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role)
    literal = await admin.fetchval("SELECT quote_literal($1)", password)
    verb = "ALTER" if known else "CREATE"
    await admin.execute(f'{verb} ROLE "{role}" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {literal}')
    if not await admin.fetchval("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", database):
        await admin.execute(f'CREATE DATABASE "{database}" OWNER "{role}" TEMPLATE template0')
    await admin.execute(
        f'ALTER DATABASE "{database}" OWNER TO "{role}"; REVOKE ALL ON DATABASE "{database}" FROM PUBLIC'
    )
    inside = await asyncpg.connect(role_url(admin_url, database))
    try:
        await inside.execute(f'ALTER SCHEMA public OWNER TO "{role}"')
    finally:
        await inside.close()


def role_url(admin_url: str, database: str, role: str | None = None, password: str = "") -> str:
    """The server's URL with a database, and a role where one is given."""
    parts = urlsplit(admin_url)
    netloc = parts.netloc
    if role is not None:
        netloc = f"{quote(role, safe='')}:{quote(password, safe='')}@{netloc.rpartition('@')[2]}"
    return urlunsplit((parts.scheme, netloc, f"/{quote(database, safe='')}", parts.query, ""))


def ensure_keys(folder: Path) -> None:
    """A signing key per service, and a folder ``trusted`` with the public halves, made on the first start."""
    # Keys are made once; every later start does without what it takes to make them, which is slow to load.
    from service_kit.auth.keys import SigningKey

    trusted = folder / "trusted"
    trusted.mkdir(parents=True, exist_ok=True)
    for service in SERVICES:
        private = folder / f"{service}.pem"
        if not private.exists():
            SigningKey.generate().save(private)
        public = SigningKey.from_pem(private.read_text(), str(private)).public_pem()
        (trusted / f"{service}.pem").write_text(public)
