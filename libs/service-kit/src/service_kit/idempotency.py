"""``Idempotency-Key``: an unsafe request that is sent twice has one effect and one answer.

The key's row is written in the transaction of the work itself, so key, work and stored answer exist together or not
at all. A second request with the same key waits for the first one's transaction.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Request
from pydantic import BaseModel
from sqlalchemy import text

from service_kit.database import WriteSession
from service_kit.problems import ProblemError
from service_kit.sqlnames import identifier

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
ModelT = TypeVar("ModelT", bound=BaseModel)


class IdempotencyConflictError(ProblemError):
    """The key was used for another request."""

    code = "idempotency_conflict"
    status = 409
    title = "This idempotency key was already used for another request"


class IdempotencyKeyInvalidError(ProblemError):
    """The key is empty, too long or holds other than visible ASCII."""

    code = "idempotency_key_invalid"
    status = 400
    title = "The idempotency key is not usable"
    detail_text = "1 to 255 visible ASCII characters are expected."


@dataclass(frozen=True)
class IdempotencyKey:
    """A key with the fingerprint of the request it came with.

    Attributes:
        key: as sent.
        fingerprint: SHA-256 over method, path, query and body.
    """

    key: str
    fingerprint: bytes


async def _idempotency_key(
    request: Request, idempotency_key: Annotated[str | None, Header(alias="Idempotency-Key")] = None
) -> IdempotencyKey | None:
    if idempotency_key is None:
        return None
    if not _KEY.fullmatch(idempotency_key):
        raise IdempotencyKeyInvalidError
    digest = hashlib.sha256()
    parts = (request.method, request.url.path, request.url.query)
    for part in (*(part.encode("utf-8", "surrogatepass") for part in parts), await request.body()):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return IdempotencyKey(idempotency_key, digest.digest())


IdempotencyKeyHeader = Annotated[IdempotencyKey | None, Depends(_idempotency_key)]
"""Parameter of a route: the request's key, or ``None``; documents the header."""


def idempotency_ddl(schema: str = "public") -> str:
    """SQL that makes the table, to be run by the owner; safe to repeat."""
    s = identifier(schema)
    return f"""
CREATE TABLE IF NOT EXISTS {s}.idempotency_key (
    owner text NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    answer json,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner, key)
);
CREATE INDEX IF NOT EXISTS idempotency_key_created ON {s}.idempotency_key (created_at);
"""


class Idempotency:
    """Stored answers of one schema.

    Args:
        schema: where the table is.
    """

    def __init__(self, schema: str = "public") -> None:
        s = identifier(schema)
        self._claim = text(f"""
            INSERT INTO {s}.idempotency_key (owner, key, fingerprint) VALUES (:owner, :key, :fingerprint)
            ON CONFLICT DO NOTHING RETURNING key
        """)
        self._stored = text(f"""
            SELECT fingerprint, answer::text AS answer FROM {s}.idempotency_key WHERE owner = :owner AND key = :key
        """)
        self._keep = text(f"""
            UPDATE {s}.idempotency_key SET answer = CAST(:answer AS json) WHERE owner = :owner AND key = :key
        """)
        self._purge = text(f"""
            DELETE FROM {s}.idempotency_key WHERE created_at < clock_timestamp() - make_interval(secs => :seconds)
        """)

    async def run_once(
        self,
        session: WriteSession,
        key: IdempotencyKey | None,
        owner: str,
        answer_type: type[ModelT],
        work: Callable[[], Awaitable[ModelT]],
    ) -> ModelT:
        """Do the work, or give the answer it gave before.

        An error undoes key and work together, so a repeat tries again.

        Args:
            session: the unit of work the work is done in.
            key: of the request; without one the work is simply done.
            owner: whose key it is, e.g. ``user:7``; equal keys of different owners are different.
            answer_type: model of the answer.
            work: what to do once.

        Raises:
            IdempotencyConflictError: the key was used for another request.
        """
        if key is None:
            return await work()
        names = {"owner": owner, "key": key.key}
        claimed = await session.execute(self._claim, {**names, "fingerprint": key.fingerprint})
        if claimed.first() is None:
            stored = (await session.execute(self._stored, names)).one_or_none()
            if stored is None or stored.answer is None or bytes(stored.fingerprint) != key.fingerprint:
                raise IdempotencyConflictError
            return answer_type.model_validate_json(stored.answer)
        answer = await work()
        await session.execute(self._keep, {**names, "answer": answer.model_dump_json(by_alias=True)})
        return answer

    async def purge(self, session: WriteSession, older_than: float) -> int:
        """Forget keys older than so many seconds; returns how many."""
        result = await session.execute(self._purge, {"seconds": older_than})
        return int(getattr(result, "rowcount", 0))
