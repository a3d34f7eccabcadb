"""Child processes: start with a log file, end, kill, pause; none outlives the process it belongs to."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from remit_local import guard

STOP_SECONDS = 20.0
NOBODY = 0
"""Owner of a program that stays until somebody stops it."""
_STARTED: list[subprocess.Popen[bytes]] = []
"""A Popen that is forgotten while its program runs warns; servers are stopped by folder, not by their Popen."""


class ProcessError(RuntimeError):
    """A program could not be started or did not answer; the text carries the end of its log."""


def reap() -> None:
    """Take the ended programs of this process out of the process table: there a dead one is taken for a living."""
    for process in _STARTED:
        process.poll()


@dataclass(frozen=True)
class Account:
    """The system user a program runs as, where it must not be the caller's."""

    uid: int
    gid: int


def free_port() -> int:
    """A TCP port of 127.0.0.1 nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_taken(port: int) -> bool:
    """Somebody listens on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def await_ended(seconds: float = 5.0) -> None:
    """Wait a moment for programs that were ended by their pid or folder, so that none is forgotten while it runs."""
    deadline = time.monotonic() + seconds
    while any(process.poll() is None for process in _STARTED) and time.monotonic() < deadline:
        time.sleep(0.02)


def log_tail(log: Path, size: int = 2000) -> str:
    """The last ``size`` characters of a log, empty where there is none."""
    if not log.exists():
        return ""
    with log.open("rb") as handle:
        handle.seek(max(0, log.stat().st_size - size * 2))
        return handle.read().decode("utf-8", "replace")[-size:].strip()


def spawn(
    command: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str],
    owner: int | None = None,
    end_signal: signal.Signals = signal.SIGTERM,
    account: Account | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that Ctrl-C reaches only the one who supervises it.

    Args:
        command: program and arguments.
        log: file its output is appended to.
        environment: the complete environment.
        owner: process after whose end the program is ended too; none = it stays until somebody stops it.
        end_signal: what asks the program to end in good order. A program of this process that is asked by SIGTERM is
            killed when this process dies without asking: nobody would see to it that it ends.
        account: user to run as.
        cwd: folder to run in.
    """
    last_signal = signal.SIGKILL if end_signal is signal.SIGTERM else end_signal
    mine = owner == os.getpid() and sys.platform.startswith("linux")
    if owner is not None and not mine:
        guarded = [sys.executable, "-I", guard.__file__, "--watch", str(owner)]
        guarded += ["--signal", end_signal.name.removeprefix("SIG")]
        if account is not None:
            guarded += ["--account", f"{account.uid}:{account.gid}"]
            account = None
        command = [*guarded, "--", *command]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=cwd,
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            preexec_fn=guard.die_with_parent(last_signal) if mine else None,  # noqa: PLW1509
        )
    _STARTED[:] = [known for known in _STARTED if known.poll() is None]
    _STARTED.append(process)
    return process


@dataclass
class Program:
    """A program that can be started again: what a supervisor and the tests hold.

    Attributes:
        name: shown before its lines.
        command: program and arguments.
        environment: complete environment.
        log: its log file.
        owner: process it belongs to; this one when none is given, ``NOBODY`` for one that stays.
        end_signal: what asks it to end in good order.
        account: user it runs as; the caller's when none is given.
        cwd: folder it runs in.
    """

    name: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    owner: int | None = None
    end_signal: signal.Signals = signal.SIGTERM
    account: Account | None = None
    cwd: Path | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        """Process id of the running program."""
        if self.process is None:
            raise ProcessError(f"{self.name} was not started")
        return self.process.pid

    @property
    def running(self) -> bool:
        """It was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it; nothing happens when it runs."""
        if not self.running:
            self.process = spawn(
                self.command,
                log=self.log,
                environment=self.environment,
                owner=None if self.owner == NOBODY else self.owner or os.getpid(),
                end_signal=self.end_signal,
                account=self.account,
                cwd=self.cwd,
            )

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ask it to end, kill it when it does not within ``seconds``."""
        self.ask_to_end()
        self.await_end(seconds)

    def ask_to_end(self) -> None:
        """Ask it to end in good order; a paused one is woken for it."""
        self.resume()
        self.process_signal(self.end_signal)

    def await_end(self, seconds: float = STOP_SECONDS) -> None:
        """Wait for its end, kill it when it does not come within ``seconds``."""
        if self.process is not None:
            _await_end(self.process, seconds)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def pause(self) -> None:
        """SIGSTOP: it holds its connections and answers nobody."""
        self.process_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after ``pause``."""
        self.process_signal(signal.SIGCONT)

    def restart(self) -> None:
        """End it if it runs and start it again."""
        self.stop()
        self.start()

    def process_signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when it has ended."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def tail(self) -> str:
        """The end of its log."""
        return log_tail(self.log)


def end_process(process: subprocess.Popen[bytes], seconds: float = STOP_SECONDS, number: int = signal.SIGTERM) -> None:
    """Signal a process and wait for it; kill it when it does not end within ``seconds``."""
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
    _await_end(process, seconds)


def _await_end(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
