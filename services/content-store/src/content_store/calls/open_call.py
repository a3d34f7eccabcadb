"""State of one open call: its limits, its sequence, and the answer of its last request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Final

from remit_contracts.calls import CallResult, Operation, OperationResult, OperationsAnswer

from content_store.calls.committing import OpenTransaction
from content_store.calls.environment import CallLimits
from content_store.calls.plan import CallPlan
from content_store.calls.session import CallSession

# An ended call is remembered so long, so that a late request hears that it was undone.
REMEMBERED_SECONDS: Final = 300.0


class CallState(Enum):
    """Where an open call stands."""

    OPEN = "open"
    COMMITTED = "committed"
    UNDONE = "undone"


class OpenCall:
    """One open call.

    Attributes:
        plan: the call.
        opened: its transaction.
        session: its operations and its verdict.
        sequence: of the next request.
        last: digest and answer of the last request.
        results: of all operations so far.
        result: how it ended, once it is committed.
        busy: a request is being worked on.
    """

    def __init__(
        self, plan: CallPlan, opened: OpenTransaction, session: CallSession, limits: CallLimits, now: float
    ) -> None:
        self.plan = plan
        self.opened = opened
        self.session = session
        self.sequence = 1
        self.last: tuple[str, OperationsAnswer] | None = None
        self.results: list[OperationResult] = []
        self.result: CallResult | None = None
        self.state = CallState.OPEN
        self.busy = False
        self._limits = limits
        self._opened_at = now
        self._used_at = now
        self._placed_at: float | None = None
        self._ended_at = now

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """One request at a time; while one is worked on, no limit ends the call under it."""
        self.busy = True
        try:
            yield
        finally:
            self.busy = False

    def used(self, now: float, *, placed: bool) -> None:
        """A request was answered; the first that placed a row starts the short limit."""
        self._used_at = now
        if placed and self._placed_at is None:
            self._placed_at = now

    def seconds_left(self, now: float) -> float:
        """Until the nearest limit."""
        limits = [self._used_at + self._limits.idle_seconds, self._opened_at + self._limits.hard_seconds]
        if self._placed_at is not None:
            limits.append(self._placed_at + self._limits.placing_seconds)
        return max(0.0, min(limits) - now)

    def expired(self, now: float) -> bool:
        """Is a limit reached?"""
        return self.seconds_left(now) <= 0

    def end(self, now: float, result: CallResult | None) -> None:
        """It is over: committed with a result, or undone."""
        self.state = CallState.UNDONE if result is None else CallState.COMMITTED
        self.result = result
        self._ended_at = now

    def forgettable(self, now: float) -> bool:
        """Did it end so long ago that nobody asks any more?"""
        return self.state is not CallState.OPEN and now - self._ended_at > REMEMBERED_SECONDS

    @staticmethod
    def digest(operations: Sequence[Operation]) -> str:
        """Tells a repeated request from another one with the same number."""
        content = json.dumps([o.model_dump(mode="json") for o in operations], ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(content.encode("ascii")).hexdigest()
