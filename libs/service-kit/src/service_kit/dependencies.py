"""FastAPI dependencies for sessions. The application keeps its :class:`Database` in ``app.state.database``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from service_kit.database import Database, ReadSession, WriteSession


def get_database(request: Request) -> Database:
    """The application's database."""
    database = request.app.state.database
    if not isinstance(database, Database):
        raise TypeError("app.state.database is not a Database")
    return database


async def _read_session(request: Request) -> AsyncIterator[ReadSession]:
    async with get_database(request).read() as session:
        yield session


async def _write_session(request: Request) -> AsyncIterator[WriteSession]:
    async with get_database(request).unit_of_work() as session:
        yield session


ReadSessionDependency = Annotated[ReadSession, Depends(_read_session, scope="function")]
"""A read-only session that is given back before the response is sent."""

WriteSessionDependency = Annotated[WriteSession, Depends(_write_session, scope="function")]
"""The request's unit of work. Scope ``function``: the commit comes before the response, so a 200 means saved."""
