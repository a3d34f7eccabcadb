"""PostgreSQL from the wheel: started, refused where it must be, and never left behind."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from remit_local.postgres import (
    PostgresError,
    PostgresServer,
    binaries,
    remove_data,
    running_pid,
    start_postgres,
    stop_postgres,
)
from remit_local.postgres_files import open_place, traversable
from remit_local.supervisor import Supervisor


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data folder below a private one, as a clone under /root or a private TMPDIR is."""
    tmp_path.chmod(0o700)
    folder = tmp_path / "postgres"
    yield folder
    stop_postgres(folder)
    remove_data(folder)


def _start(data: Path, port: int | None = None) -> PostgresServer:
    return start_postgres(data, port=port, durable=False, owner=os.getpid())


def _wait_until_gone(server: PostgresServer) -> None:
    deadline = time.monotonic() + 10
    while running_pid(server.data) is not None and time.monotonic() < deadline:
        time.sleep(0.05)


async def _write(server: PostgresServer, statement: str) -> object:
    connection = await asyncpg.connect(server.url())
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_data_survives_a_crash_of_the_server_and_its_pid_file(data: Path) -> None:
    server = _start(data)
    await _write(server, "CREATE TABLE kept AS SELECT 1 AS n")
    pid = running_pid(server.data)
    assert pid is not None
    await _write(server, "CHECKPOINT")
    os.kill(pid, signal.SIGKILL)
    _wait_until_gone(server)
    assert (server.data / "postmaster.pid").exists()
    again = _start(data)
    assert await _write(again, "SELECT n FROM kept") == 1
    assert again.password == server.password


async def test_a_supervised_server_that_is_killed_comes_back_on_its_port_with_its_data(data: Path) -> None:
    server = _start(data)
    supervisor = Supervisor([server.program])
    supervisor.start()
    try:
        await _write(server, "CREATE TABLE kept AS SELECT 1 AS n")
        await _write(server, "CHECKPOINT")
        before = server.program.pid
        os.kill(before, signal.SIGKILL)
        supervisor.wait_until(lambda: supervisor.restarts("postgres") > 0 and _answers(server), "postgres", 30)
        assert server.program.pid != before
        assert await _write(server, "SELECT n FROM kept") == 1
    finally:
        supervisor.stop()
    assert running_pid(server.data) is None


def _answers(server: PostgresServer) -> bool:
    probe = [str(binaries() / "pg_isready"), "-q", "-h", server.host, "-p", str(server.port)]
    return subprocess.run(probe, check=False, capture_output=True).returncode == 0


async def test_a_pid_file_with_another_programs_number_does_not_hinder(data: Path) -> None:
    server = _start(data)
    stop_postgres(data)
    (server.data / "postmaster.pid").write_text(f"{os.getpid()}\n{server.data}\n")
    assert running_pid(server.data) is None


def test_a_served_cluster_a_taken_port_and_another_version_are_refused(data: Path, tmp_path: Path) -> None:
    server = _start(data)
    with pytest.raises(PostgresError, match="already served"):
        _start(data)
    with pytest.raises(PostgresError, match=f"port {server.port} is taken"):
        _start(tmp_path / "other", port=server.port)
    stop_postgres(data)
    version = server.data / "PG_VERSION"
    kept = version.read_text()
    version.write_text("14\n")
    with pytest.raises(PostgresError, match=r"is of PostgreSQL 14, this program brings \d+"):
        _start(data)
    version.write_text(kept)
    remove_data(tmp_path / "other")


def test_a_folder_that_is_no_cluster_is_not_touched(data: Path) -> None:
    data.mkdir()
    (data / "letter.txt").write_text("mine")
    if os.geteuid() == 0 and not traversable(data):
        pytest.skip("as root the cluster of a private folder lies elsewhere")
    with pytest.raises(PostgresError, match="no PostgreSQL cluster"):
        _start(data)
    assert (data / "letter.txt").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as somebody else")
def test_as_root_the_cluster_of_a_private_folder_lies_where_its_user_can_reach_it(data: Path) -> None:
    assert not traversable(data)
    server = _start(data)
    assert traversable(server.data)
    assert server.data.stat().st_uid != 0
    assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
    stop_postgres(data)
    remove_data(data)
    assert not server.data.exists()


async def test_two_servers_run_side_by_side_and_passwords_are_needed(data: Path, tmp_path: Path) -> None:
    first = _start(data)
    other = tmp_path / "second"
    second = _start(other)
    try:
        assert first.port != second.port
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(second.url(password=first.password))
        with socket.create_connection(("127.0.0.1", second.port), timeout=5):
            pass
    finally:
        stop_postgres(other)
        remove_data(other)


def test_temporary_things_go_where_everybody_can_reach() -> None:
    assert traversable(open_place())
