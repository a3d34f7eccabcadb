"""Runs one program and ends it when another process ends, however that one died.

Started as a file (``python -I guard.py --watch PID --signal INT -- program …``): nothing but the standard library, so
that it is up at once. A signal to the guard is handed on; killing the guard kills the program.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

GRACE_SECONDS = 15.0
POLL_SECONDS = 0.5
_SET_PARENT_DEATH_SIGNAL = 1


def die_with_parent(number: int = signal.SIGKILL) -> Callable[[], None] | None:
    """A ``preexec_fn`` that ends the child when the thread that made it ends; none where the system has no such thing."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def arm() -> None:
        library.prctl(_SET_PARENT_DEATH_SIGNAL, int(number))
        if os.getppid() != parent:  # it died in between
            os.kill(os.getpid(), number)

    return arm


def wait_for_end(pid: int) -> None:
    """Block until the process ``pid`` is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):
        while _alive(pid):
            time.sleep(POLL_SECONDS)
        return
    try:
        select.select([handle], [], [])
    finally:
        os.close(handle)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _end(child: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(number)
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()


def main(arguments: list[str] | None = None) -> int:
    """Run the program; the answer is its exit code."""
    parser = argparse.ArgumentParser(description="run a program until a watched process ends")
    parser.add_argument("--watch", type=int, required=True)
    parser.add_argument("--signal", default="TERM")
    parser.add_argument("--account", help="uid:gid to run the program as")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)
    number = signal.Signals[f"SIG{options.signal}"]
    uid, gid = map(int, options.account.split(":")) if options.account else (None, None)
    child = subprocess.Popen(  # noqa: S603
        options.command,
        preexec_fn=die_with_parent(),  # noqa: PLW1509
        user=uid,
        group=gid,
        extra_groups=None if uid is None else [],
    )

    def hand_on(received: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number if received == signal.SIGTERM else received)

    for received in (signal.SIGTERM, signal.SIGINT):
        signal.signal(received, hand_on)

    def watch() -> None:
        wait_for_end(options.watch)
        _end(child, number)

    threading.Thread(target=watch, daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
