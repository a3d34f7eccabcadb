"""Databases of tests: made from a template in a moment, dropped afterwards."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from remit_harness.run import TestRun

T = TypeVar("T")
NAME = re.compile(r"[a-z][a-z0-9_]{0,50}")


def database_url(admin_url: str, database: str, user: str | None = None, password: str | None = None) -> str:
    """The same server's URL with another database, and another user where one is given."""
    parts = urlsplit(admin_url)
    netloc = parts.netloc
    if user is not None:
        host = netloc.rpartition("@")[2]
        netloc = f"{user}:{password or ''}@{host}"
    return urlunsplit((parts.scheme, netloc, f"/{database}", parts.query, parts.fragment))


class Databases:
    """Makes databases on the run's server and drops those it made.

    Attributes:
        admin_url: an administrator's URL.
    """

    def __init__(self, admin_url: str, run: TestRun) -> None:
        self.admin_url = admin_url
        self._run = run
        self._made: list[str] = []

    async def create(self, prefix: str = "test", *, template: str | None = None) -> str:
        """A new database; the answer is an administrator's URL of it.

        Args:
            prefix: lower-case start of its name.
            template: database it is a copy of; nobody may be connected to that one.
        """
        name = f"{checked_name(prefix)}_{secrets.token_hex(6)}"
        await self._execute(f'CREATE DATABASE "{name}" TEMPLATE "{checked_name(template or "template0")}"')
        self._made.append(name)
        return database_url(self.admin_url, name)

    async def template(self, name: str, build: Callable[[str], Awaitable[None]]) -> str:
        """The name of a template database of this run, built once by whichever process asks first.

        Args:
            name: of the template.
            build: fills an empty database, given an administrator's URL; must leave no connection behind.
        """
        database = f"{checked_name(name)}_{self._run.owner}"
        with self._run.locked(f"template-{name}"):
            if self._run.known(f"template-{name}") is None:
                await self._execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
                await self._execute(f'CREATE DATABASE "{database}" TEMPLATE template0')
                await build(database_url(self.admin_url, database))
                self._run.note(f"template-{name}", {"database": database})
        return database

    async def drop(self) -> None:
        """Drop what was made, cutting connections that are still open."""
        while self._made:
            await self._execute(f'DROP DATABASE IF EXISTS "{self._made.pop()}" WITH (FORCE)')

    async def drop_template(self, name: str) -> None:
        """Drop a template of this run."""
        await self._execute(f'DROP DATABASE IF EXISTS "{checked_name(name)}_{self._run.owner}" WITH (FORCE)')

    async def _execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self.admin_url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


def built(admin_url: str, run: TestRun, build: Callable[[Databases], Coroutine[Any, Any, T]]) -> Iterator[T]:
    """What a coroutine makes for many tests, its databases dropped at the end; for ``yield from`` in a fixture."""
    made = Databases(admin_url, run)
    try:
        yield asyncio.run(build(made))
    finally:
        asyncio.run(made.drop())


def checked_name(name: str) -> str:
    """The name, where it is one that needs no quoting.

    Raises:
        ValueError: it is not.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"not a database name: {name!r}")
    return name
