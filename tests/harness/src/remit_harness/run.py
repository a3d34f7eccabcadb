"""The folder of one test run: what its processes (a controller and its xdist workers) share."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "REMIT_HARNESS_FOLDER"
OWNER = "REMIT_HARNESS_OWNER"


@dataclass(frozen=True)
class TestRun:
    """One run of pytest.

    Attributes:
        folder: shared by the run's processes, deleted at its end.
        owner: process id of the controller; servers end when it ends.
    """

    __test__ = False

    folder: Path
    owner: int

    @classmethod
    def begin(cls) -> TestRun:
        """In the controller: make the folder and tell the workers through the environment."""
        run = cls(Path(tempfile.mkdtemp(prefix="remit-tests-")), os.getpid())
        os.environ[FOLDER] = str(run.folder)
        os.environ[OWNER] = str(run.owner)
        return run

    @classmethod
    def join(cls) -> TestRun:
        """In a worker: the controller's run."""
        return cls(Path(os.environ[FOLDER]), int(os.environ[OWNER]))

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """One process at a time, per name."""
        with (self.folder / f"{name}.lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def known(self, name: str) -> dict[str, Any] | None:
        """What another process of the run noted under this name."""
        file = self.folder / f"{name}.json"
        if not file.exists():
            return None
        noted: dict[str, Any] = json.loads(file.read_text())
        return noted

    def note(self, name: str, value: dict[str, Any]) -> None:
        """Leave a note for the other processes. Call it inside ``locked``."""
        (self.folder / f"{name}.json").write_text(json.dumps(value))

    def end(self) -> None:
        """In the controller: forget the run."""
        os.environ.pop(FOLDER, None)
        os.environ.pop(OWNER, None)
        shutil.rmtree(self.folder, ignore_errors=True)
