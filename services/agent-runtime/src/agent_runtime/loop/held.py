"""A run in the hands of one worker: what it knows of it, and the signals that end the segment."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agent_runtime.runs.errors import LeaseLost
from agent_runtime.runs.models import Held, RunRow
from agent_runtime.runs.states import RunState

T = TypeVar("T")


class CancelRequested(Exception):
    """Somebody cancelled the run; the segment ends at this boundary (T-28)."""


@dataclass
class HeldRun:
    """A run, its state and its lease.

    Attributes:
        run: as of the last write.
        cancelled: set by the heartbeat or a write that saw the request.
        lost: set when the lease is gone.
        remote_calls: made in this segment (T-05).
    """

    run: RunRow
    state: RunState
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    remote_calls: int = 0

    @property
    def guard(self) -> Held:
        """The guard of every write of this segment."""
        return Held(self.run.lease_epoch)

    def boundary(self) -> None:
        """Stop here if the run is cancelled or no longer ours.

        Raises:
            LeaseLost: write nothing more.
            CancelRequested: settle as cancelled.
        """
        if self.lost.is_set():
            raise LeaseLost
        if self.cancelled.is_set() or self.run.cancel_requested:
            raise CancelRequested

    async def interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """Work that ends at once when the run is cancelled or lost: a model call, never a write.

        Raises:
            LeaseLost: see :meth:`boundary`.
            CancelRequested: see :meth:`boundary`.
        """
        task = asyncio.ensure_future(work)
        signals = [asyncio.ensure_future(event.wait()) for event in (self.cancelled, self.lost)]
        try:
            await asyncio.wait([task, *signals], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        finally:
            for waiting in (task, *signals):
                waiting.cancel()
            await asyncio.gather(task, *signals, return_exceptions=True)
        self.boundary()
        raise LeaseLost
