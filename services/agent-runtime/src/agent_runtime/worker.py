"""The worker: claims queued runs, executes their segments, takes up what other workers left behind (T-22 to T-24)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from uuid import UUID

import asyncpg
from remit_contracts.runs import RunStatus
from service_kit.database import server_settings, shielded
from service_kit.logging import get_logger, log_context
from service_kit.pool import plain_url
from sqlalchemy.exc import SQLAlchemyError

from agent_runtime.deps import RUN_CHANNEL, Runtime
from agent_runtime.loop.held import HeldRun
from agent_runtime.runs.errors import LeaseLost, TransitionRefused
from agent_runtime.runs.janitor import Janitor
from agent_runtime.runs.journal import status_step
from agent_runtime.runs.models import Entry, Held, LeaseFrom, RunChange, RunRow, Unheld
from agent_runtime.runs.states import RunState

logger = get_logger(__name__)
REAPED_AT_ONCE = 50
LISTEN_AGAIN = 2.0
_AWAY = (SQLAlchemyError, OSError, TimeoutError)


class Worker:
    """Executes any number of runs up to the setting; any number of workers work side by side."""

    def __init__(self, runtime: Runtime, name: str = "worker") -> None:
        self._runtime = runtime
        self._settings = runtime.settings
        self._journal = runtime.journal
        self.identity = f"{name}:{runtime.identity}"[:64]
        self._wake = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Work until cancelled; what is being executed is handed over to other workers then."""
        janitor = Janitor(self._journal, self._settings)
        beside = [asyncio.create_task(self._listen()), asyncio.create_task(janitor.run())]
        try:
            while True:
                self._wake.clear()
                try:
                    await self.reap()
                    while len(self._running) < self._settings.worker_concurrency and await self._take():
                        pass
                except _AWAY as error:
                    logger.warning("worker lost the database", error=type(error).__name__)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), self._settings.poll_interval)
        finally:
            for task in (*beside, *self._running):
                task.cancel()
            await asyncio.gather(*beside, *self._running, return_exceptions=True)

    async def run_until_idle(self) -> int:
        """Execute what is queued and due, one after the other; returns how many segments."""
        count = 0
        await self.reap()
        while (run := await self.claim()) is not None:
            await self.execute(run)
            count += 1
        return count

    async def claim(self) -> RunRow | None:
        """The next queued run, leased to this worker with a new epoch."""
        async with self._runtime.database.unit_of_work() as session:
            run_id = await self._journal.runs.lock_next(session)
            if run_id is None:
                return None
            change = RunChange(status=RunStatus.RUNNING, lease=LeaseFrom(self.identity, self._settings.lease_seconds))
            entry = Entry(change=change, steps=(status_step(RunStatus.RUNNING, change),))
            return await self._journal.write_in(session, run_id, Unheld((RunStatus.QUEUED,)), entry)

    async def execute(self, run: RunRow) -> None:
        """One segment, with a heartbeat beside it."""
        held = HeldRun(run, RunState())
        heartbeat = asyncio.create_task(self._heartbeat(held))
        try:
            with log_context(run_id=run.id, conversation_id=run.conversation_id):
                await self._runtime.segments.execute(held)
        except asyncio.CancelledError:
            await shielded(self._hand_over(held))
            raise
        except _AWAY as error:
            logger.warning("segment lost the database, the lease decides", error=type(error).__name__)
        except Exception as error:
            logger.error("segment failed", run_id=str(run.id), exc_info=error)
            await self._after_fault(held)
        finally:
            heartbeat.cancel()
            await asyncio.gather(heartbeat, return_exceptions=True)

    async def reap(self) -> int:
        """Put runs whose lease ran out back into the queue; their state says where they stood."""
        async with self._runtime.database.unit_of_work() as session:
            expired = await self._journal.runs.lock_expired(session, REAPED_AT_ONCE)
            for run_id, epoch in expired:
                await self._requeue_expired(session, run_id, epoch)
        return len(expired)

    async def _requeue_expired(self, session: Any, run_id: UUID, epoch: int) -> None:
        run = await self._journal.runs.get(session, run_id)
        if run is None:
            return
        change = RunChange(
            status=RunStatus.QUEUED,
            release=True,
            requeues=run.requeues + 1,
            available_in=0.0,
            error_code="worker_lost",
        )
        entry = Entry(change=change, steps=(status_step(RunStatus.QUEUED, change),))
        await self._journal.write_in(session, run_id, Held(epoch), entry)
        logger.warning("lease ran out, the run is queued again", run_id=str(run_id), requeues=run.requeues + 1)

    async def _hand_over(self, held: HeldRun) -> None:
        """This process is being stopped: another worker goes on at once; a call in flight is resolved there by its id."""
        change = RunChange(status=RunStatus.QUEUED, release=True, available_in=0.0)
        entry = Entry(change=change, steps=(status_step(RunStatus.QUEUED, change),))
        try:
            await self._journal.write(held.run.id, held.guard, entry)
        except (LeaseLost, *_AWAY) as error:
            logger.info("run not handed over, the lease decides", error=type(error).__name__)

    async def _after_fault(self, held: HeldRun) -> None:
        """A fault of ours: given back, so that a call in flight is resolved and the run ends after some attempts."""
        try:
            await self._runtime.segments.give_back(held, "internal_error")
        except (LeaseLost, TransitionRefused, *_AWAY) as error:
            logger.warning("run not given back, the lease decides", error=type(error).__name__)

    async def _take(self) -> bool:
        run = await self.claim()
        if run is None:
            return False
        task = asyncio.create_task(self.execute(run))
        self._running.add(task)
        task.add_done_callback(self._done)
        return True

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._wake.set()

    async def _heartbeat(self, held: HeldRun) -> None:
        """Renew the lease; tell the segment that it is lost or that somebody cancelled the run."""
        interval = self._settings.lease_seconds / 3
        while True:
            await asyncio.sleep(min(interval, 1.0) if interval > 1.0 else interval)
            try:
                async with self._runtime.database.unit_of_work() as session:
                    cancelled = await self._journal.runs.heartbeat(
                        session, held.run.id, held.run.lease_epoch, self._settings.lease_seconds
                    )
            except _AWAY as error:
                logger.warning("heartbeat failed", error=type(error).__name__)
                continue
            if cancelled is None:
                held.lost.set()
                return
            if cancelled:
                held.cancelled.set()

    async def _listen(self) -> None:
        """Be woken by other processes; without it the poll interval decides."""
        while True:
            try:
                await self._listen_once()
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError) as error:
                logger.info("not listening for wake-ups", error=type(error).__name__)
            await asyncio.sleep(LISTEN_AGAIN)

    async def _listen_once(self) -> None:
        closed = asyncio.Event()
        connection: Any = await asyncpg.connect(
            plain_url(self._settings.database_url.get_secret_value()),
            timeout=10,
            server_settings=server_settings("agent-runtime-listen"),
        )
        try:
            connection.add_termination_listener(lambda _connection: closed.set())
            await connection.add_listener(RUN_CHANNEL, lambda *_: self._wake.set())
            await closed.wait()
        finally:
            connection.terminate()
