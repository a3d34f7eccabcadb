"""The state folder: secrets, keys, data and logs of one local stack, and who uses it right now."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

STATE_VARIABLE = "REMIT_STATE"
FORMAT = 1
"""Raised when the folder's layout changes; a change needs a step in ``_migrate``."""

SECRET_NAMES = (
    "store_owner", "store_service", "runtime", "gateway", "call_token_key", "state_key", "admin", "emma", "jonas",
)  # fmt: skip


class StateError(RuntimeError):
    """The state folder cannot be used; the text says why and what to do."""


def default_folder() -> Path:
    """``REMIT_STATE``, else ``.remit`` beside the repository's lock file, else the user's state folder."""
    if given := os.environ.get(STATE_VARIABLE):
        return Path(given).absolute()
    for parent in Path(__file__).resolve().parents:
        if (parent / "uv.lock").exists() and (parent / "deploy" / "local").is_dir():
            return parent / ".remit"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "remit"


@dataclass
class State:
    """What one stack keeps between starts.

    Attributes:
        folder: everything lies below it.
        secrets: name -> value, random.
        demo: what the demo site's loading left: uids by name; empty while it is not loaded.
        migrated: fingerprint of the code the databases were brought up to date by.
    """

    folder: Path
    secrets: dict[str, str] = field(default_factory=dict)
    demo: dict[str, Any] = field(default_factory=dict)
    migrated: str = ""

    @property
    def file(self) -> Path:
        """The file this object is kept in."""
        return self.folder / "state.json"

    @property
    def postgres(self) -> Path:
        """Data folder of PostgreSQL."""
        return self.folder / "postgres"

    @property
    def broker(self) -> Path:
        """Folder of the broker."""
        return self.folder / "broker"

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.folder / "logs"

    @property
    def keys(self) -> Path:
        """Keys of the services."""
        return self.folder / "keys"

    @property
    def running_file(self) -> Path:
        """Addresses and process ids of the stack that runs."""
        return self.folder / "running.json"

    def save(self) -> None:
        """Write it, readable by its owner only."""
        data = {
            "format": FORMAT, "version": version("remit-local"), "migrated": self.migrated,
            "secrets": self.secrets, "demo": self.demo,
        }  # fmt: skip
        partial = self.file.with_suffix(".tmp")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            json.dump(data, handle, indent=2)
        partial.replace(self.file)

    def note_running(self, facts: Mapping[str, Any]) -> None:
        """Leave a note for ``remit status`` and ``remit chat``."""
        self.running_file.write_text(json.dumps({"pid": os.getpid(), **facts}, indent=2))

    def running(self) -> dict[str, Any] | None:
        """The note of the stack that runs; none when it ended."""
        try:
            facts: dict[str, Any] = json.loads(self.running_file.read_text())
            os.kill(int(facts["pid"]), 0)
        except (FileNotFoundError, ProcessLookupError, ValueError, KeyError):
            return None
        except PermissionError:
            return facts
        return facts


def open_state(folder: Path) -> State:
    """Read the state of a folder, or begin a new one.

    Raises:
        StateError: it was written by a newer program, or cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    state = State(folder)
    if state.file.exists():
        try:
            data = json.loads(state.file.read_text())
            found = int(data["format"])
            state.secrets, state.demo = dict(data["secrets"]), dict(data["demo"])
            state.migrated = str(data.get("migrated", ""))
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(
                f"{state.file} cannot be read ({type(error).__name__}); begin anew with --reset"
            ) from error
        if found > FORMAT:
            raise StateError(
                f"the data in {folder} was written by a newer version ({data.get('version', 'unknown')}); "
                "use that version, or begin anew with --reset"
            )
        _migrate(state, found)
    for name in SECRET_NAMES:
        state.secrets.setdefault(name, random_secret(name))
    state.save()
    return state


_PEOPLE = ("admin", "emma", "jonas")


def random_secret(name: str) -> str:
    """A value for a secret of this name, in the form its reader wants."""
    if name in _PEOPLE:
        return _sayable()
    if name == "state_key":
        return base64.b64encode(secrets.token_bytes(32)).decode()
    return secrets.token_urlsafe(24)


def random_secrets() -> dict[str, str]:
    """A value for each secret of a stack."""
    return {name: random_secret(name) for name in SECRET_NAMES}


def _sayable() -> str:
    """A password a person can type: four groups of letters and digits that are not mixed up."""
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(letters) for _ in range(4)) for _ in range(4))


def _migrate(state: State, found: int) -> None:
    """Bring an older layout up to date. There is only one so far."""
    if found < 1:
        raise StateError(f"{state.file} has format {found}, which never existed; begin anew with --reset")


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other ``remit`` processes out of the folder.

    Raises:
        StateError: another one is at work in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(
                f"another remit uses {folder}; end it, or choose another folder with {STATE_VARIABLE}"
            ) from error
        yield


def forget(state_folder: Path) -> None:
    """Delete everything but the lock. PostgreSQL must be stopped and its data removed before."""
    for entry in state_folder.iterdir():
        if entry.name == "lock":
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
