"""Finds what the stream lost: compares unfinished runs with the runtime's events API and fetches what is missing (CALLS 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from service_kit.client import RemoteError
from service_kit.database import Database
from service_kit.logging import get_logger
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from chat_gateway.clients.ports import RuntimePort
from chat_gateway.projection.apply import MissingStepsError
from chat_gateway.projection.delivery import Delivery
from chat_gateway.segments.models import RunRow

logger = get_logger(__name__)
RUNS_PER_REQUEST = 50


@dataclass(frozen=True)
class _Known:
    run: UUID
    conversation: UUID
    user: int
    last: int


class Refill:
    """Checks unfinished runs: at start, after every rejoin, and every some seconds."""

    def __init__(self, database: Database, runtime: RuntimePort, delivery: Delivery) -> None:
        self._database = database
        self._runtime = runtime
        self._delivery = delivery

    async def check(self) -> int:
        """Fetch what is missing of every unfinished run; what cannot be had now is left for the next time.

        Returns:
            Number of steps applied.
        """
        applied = 0
        for user, batch in _batches(await self._unfinished()):
            applied += await self._check_batch(user, batch)
        return applied

    async def _unfinished(self) -> Sequence[_Known]:
        async with self._database.read() as session:
            rows = await session.execute(
                select(RunRow.id, RunRow.conversation_id, RunRow.user_uid, RunRow.last_sequence)
                .where(RunRow.settled_at.is_(None), RunRow.readable)
                .order_by(RunRow.user_uid, RunRow.created_at)
            )
        return [_Known(row.id, row.conversation_id, row.user_uid, row.last_sequence) for row in rows]

    async def _check_batch(self, user: int, batch: Sequence[_Known]) -> int:
        after: Mapping[UUID, int] = {known.run: known.last for known in batch}
        try:
            answer = await self._runtime.events(user, [known.run for known in batch], after)
        except RemoteError as error:
            logger.warning("unfinished runs not compared", user_uid=user, error=str(error))
            return 0
        pages = {page.run_id: page for page in answer.pages}
        applied = 0
        for known in batch:
            page = pages.get(known.run)
            try:
                if page is None:
                    await self._delivery.unreadable(known.conversation, known.run)
                elif page.steps:
                    applied += await self._delivery.steps(known.conversation, known.run, user, page.steps)
            except (RemoteError, DBAPIError, MissingStepsError) as error:
                # One run must not keep the others from being compared.
                logger.warning("run not refilled", run_id=str(known.run), error=type(error).__name__)
        return applied


def _batches(runs: Sequence[_Known]) -> Iterator[tuple[int, Sequence[_Known]]]:
    for user, group in groupby(runs, key=lambda known: known.user):
        owned = list(group)
        for start in range(0, len(owned), RUNS_PER_REQUEST):
            yield user, owned[start : start + RUNS_PER_REQUEST]
