"""Keeps programs running: one that dies is started again, with growing pauses while it keeps dying."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from remit_local.processes import ProcessError, Program

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 10.0
STEADY_SECONDS = 30.0
LOOK_SECONDS = 0.2
DEATHS_TOO_MANY = 3


@dataclass
class _Health:
    started: float = 0.0
    deaths: int = 0
    restart_at: float | None = None
    restarts: int = 0


def pause_after(deaths: int) -> float:
    """Seconds to wait before the next start after so many deaths in a row."""
    return float(min(FIRST_PAUSE * 2 ** max(deaths - 1, 0), LONGEST_PAUSE))


class Supervisor:
    """Starts programs in order, watches them in a thread, and stops them in the reverse order.

    Args:
        programs: in the order they are started.
        tell: is handed one line for each thing worth knowing.
    """

    def __init__(self, programs: Sequence[Program], tell: Callable[[str], None] = lambda line: None) -> None:
        self.programs = list(programs)
        self._tell = tell
        self._health = {program.name: _Health() for program in self.programs}
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, *, watch: bool = True) -> None:
        """Start every program and begin to watch; a test that kills programs itself does not want them watched."""
        for program in self.programs:
            self._begin(program)
        if not watch:
            return
        # A child dies with the thread that made it (guard.die_with_parent): the watcher must outlive what it restarts.
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the programs; all are asked first, in reverse order, so they end side by side."""
        self._ending.set()
        for program in reversed(self.programs):
            with contextlib.suppress(ProcessLookupError):
                program.ask_to_end()
        for program in reversed(self.programs):
            program.await_end()
        # Last: what the watcher started again dies with it (guard.die_with_parent).
        if self._thread is not None:
            self._thread.join()

    def restarts(self, name: str) -> int:
        """How often a program was started again."""
        return self._health[name].restarts

    def wait_until(self, ready: Callable[[], bool], what: str, seconds: float) -> None:
        """Block until ``ready()``.

        Raises:
            ProcessError: not within ``seconds``; with the end of the log of a program that keeps dying.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if dying := self._dying():
                raise ProcessError(f"{dying.name} keeps ending:\n{dying.tail()}")
            if time.monotonic() > deadline:
                raise ProcessError(f"{what} is not ready after {seconds:.0f} s; see the logs")
            time.sleep(0.1)

    def _dying(self) -> Program | None:
        """A program that died several times in a row, or at all where nobody starts it again."""
        for program in self.programs:
            unwatched = self._thread is None and program.process is not None and not program.running
            if unwatched or self._health[program.name].deaths >= DEATHS_TOO_MANY:
                return program
        return None

    def _begin(self, program: Program) -> None:
        health = self._health[program.name]
        health.started, health.restart_at = time.monotonic(), None
        program.start()

    def _watch(self) -> None:
        while not self._ending.wait(LOOK_SECONDS):
            for program in self.programs:
                self._look_after(program, self._health[program.name])

    def _look_after(self, program: Program, health: _Health) -> None:
        now = time.monotonic()
        if program.running:
            if health.deaths and now - health.started > STEADY_SECONDS:
                health.deaths = 0
            return
        if health.restart_at is None:
            health.deaths = 1 if now - health.started > STEADY_SECONDS else health.deaths + 1
            wait = pause_after(health.deaths)
            health.restart_at = now + wait
            self._tell(f"{program.name} ended, starting it again in {wait:.1f} s (log: {program.log})")
        elif now >= health.restart_at and not self._ending.is_set():
            health.restarts += 1
            self._begin(program)
