"""Fence and outcome rows: what the database knows of a call (CALLS 1, S-58).

A call that was resolved as not done gets an outcome row of its own, without a request. The unique id then keeps a
late ``apply`` out whatever its snapshot shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol
from uuid import UUID

from remit_contracts.calls import CallOutcome, CallResolution, CallResult
from service_kit.ids import uuid7

_RESOLVED: Final = ""

_BEGIN: Final = """
WITH fence AS (
  INSERT INTO public.run_fence AS f (run_id, epoch) VALUES ($2, $3)
  ON CONFLICT (run_id) DO UPDATE SET epoch = excluded.epoch, updated_at = clock_timestamp()
    WHERE f.epoch <= excluded.epoch
  RETURNING f.run_id
), outcome AS (
  INSERT INTO public.call_outcome (call_id, run_id, epoch, request_hash)
  SELECT $1, $2, $3, $4 FROM fence
  ON CONFLICT (call_id) DO NOTHING RETURNING call_id
)
SELECT EXISTS (SELECT FROM fence) AS passed, EXISTS (SELECT FROM outcome) AS opened
"""
_FENCE: Final = """
INSERT INTO public.run_fence AS f (run_id, epoch) VALUES ($1, $2)
ON CONFLICT (run_id) DO UPDATE SET epoch = excluded.epoch, updated_at = clock_timestamp() WHERE f.epoch <= excluded.epoch
RETURNING f.run_id
"""
_VERDICT: Final = """
UPDATE public.call_outcome SET verdict = 'committed', judged = $2, result = $3::jsonb WHERE call_id = $1
RETURNING call_id
"""
_MARK: Final = """
INSERT INTO public.call_outcome (call_id, run_id, epoch, request_hash, verdict, judged)
VALUES ($1, $2, $3, '', 'rolled_back', 0) ON CONFLICT (call_id) DO NOTHING RETURNING call_id
"""
_NEVER: Final = """
INSERT INTO public.call_outcome (call_id, run_id, epoch, request_hash) VALUES ($1, $2, $3, '')
"""
_READ: Final = (
    "SELECT run_id, request_hash, verdict, result::text AS result FROM public.call_outcome WHERE call_id = $1"
)


class Connection(Protocol):
    """What is used of a database connection."""

    async def fetch(self, query: str, *args: Any) -> Any:
        """Run a statement, all rows."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What the first statement of a call found.

    Attributes:
        passed: no newer lease holds the run.
        opened: the outcome row is ours; otherwise the id was used before.
    """

    passed: bool
    opened: bool


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """An outcome row that is already there.

    Attributes:
        run_id: the run the call belongs to.
        request_hash: of what it did; empty for a call resolved as not done.
        committed: its verdict.
        result: as answered, None for a call resolved as not done.
    """

    run_id: UUID
    request_hash: str
    committed: bool
    result: CallResult | None

    @property
    def resolved(self) -> bool:
        """Was it settled by ``resolve`` as not done?"""
        return self.request_hash == _RESOLVED

    def resolution(self, call_id: UUID) -> CallResolution:
        """What is known of the call."""
        if not self.committed:
            outcome = CallOutcome.ROLLED_BACK
        else:
            # Committed without an answer: somebody wrote the verdict in our place, so what was done is not known.
            outcome = CallOutcome.UNKNOWN if self.result is None else CallOutcome.COMMITTED
        return CallResolution(call_id=call_id, outcome=outcome, result=self.result)


async def begin(connection: Connection, call_id: UUID, run_id: UUID, epoch: int, request_hash: str) -> Begun:
    """Pass the run's fence and open the outcome row, in the first statement of the call's transaction.

    The fence row stays locked to the end of the transaction: calls of one run come one after the other.
    """
    row = (await connection.fetch(_BEGIN, call_id, run_id, epoch, request_hash))[0]
    return Begun(row["passed"], row["opened"])


async def take_fence(connection: Connection, run_id: UUID, epoch: int) -> bool:
    """Take the run's fence row, waiting for a call in flight; False when a newer lease holds the run."""
    return bool(await connection.fetch(_FENCE, run_id, epoch))


async def write_verdict(connection: Connection, call_id: UUID, judged: int, result: CallResult) -> bool:
    """State what the call did and how many captured rows that judgement covers; False when its row is gone."""
    return bool(await connection.fetch(_VERDICT, call_id, judged, result.model_dump_json()))


async def mark_not_done(connection: Connection, call_id: UUID, run_id: UUID, epoch: int) -> bool:
    """Keep the id from ever being used: the call was resolved as not done; False when it was used meanwhile."""
    return bool(await connection.fetch(_MARK, call_id, run_id, epoch))


async def never_commit(connection: Connection, run_id: UUID, epoch: int) -> None:
    """Have the database refuse to commit this transaction, whoever asks: its outcome row gets no verdict (CALLS 2, 4)."""
    await connection.fetch(_NEVER, uuid7(), run_id, epoch)


async def read_outcome(connection: Connection, call_id: UUID) -> StoredOutcome | None:
    """The committed outcome row of a call, or None."""
    rows = await connection.fetch(_READ, call_id)
    if not rows:
        return None
    row = rows[0]
    result = CallResult.model_validate_json(row["result"]) if row["result"] is not None else None
    return StoredOutcome(row["run_id"], row["request_hash"], row["verdict"] == "committed", result)
