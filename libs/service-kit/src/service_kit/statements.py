"""Counts the statements a connection sends, transaction control included: query budgets are asserted with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from asyncpg.connection import Connection, LoggedQuery
from sqlalchemy import Engine, event


class StatementCounter:
    """Every statement of the connections it is attached to, in order."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def attach(self, connection: Connection) -> None:
        """Watch one asyncpg connection; statements of prepared statement objects are not seen."""
        connection.add_query_logger(self._seen)

    def attach_engine(self, engine: Engine) -> None:
        """Watch the (synchronous half of an) SQLAlchemy engine, which works with prepared statement objects."""

        def executed(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            self.statements.append(statement)

        event.listen(engine, "before_cursor_execute", executed)
        for name in ("begin", "commit", "rollback"):
            event.listen(engine, name, partial(self._control, name.upper()))

    def _control(self, statement: str, _connection: Any) -> None:
        self.statements.append(statement)

    async def _seen(self, query: LoggedQuery) -> None:
        self.statements.append(query.query)

    def reset(self) -> None:
        """Forget what was counted."""
        self.statements.clear()

    @property
    def count(self) -> int:
        """Statements since the start or the last reset."""
        return len(self.statements)

    @contextmanager
    def measure(self) -> Iterator[StatementCounter]:
        """Count from zero inside the block; read ``count`` afterwards."""
        self.reset()
        yield self
