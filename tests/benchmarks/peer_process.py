"""A peer in an environment and a database of its own, made when it is first asked for; no dependency of the project."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import asyncpg

_PEERS = Path(__file__).parent / "peers"
_BUILD = Path(__file__).resolve().parents[2] / "build"


class PeerUnavailable(Exception):
    """The peer cannot be installed or started here; the message says why."""


class PeerProcess:
    """Answers a line of JSON for each line it is sent.

    Args:
        name: of its folder below ``peers``, with ``requirements.txt`` and ``peer.py``.
        admin_url: of an administrator of the server both sides are measured on.
    """

    def __init__(self, name: str, admin_url: str) -> None:
        self._name = name
        self._admin = admin_url
        self._database = f"bench_{name}_{secrets.token_hex(4)}"
        self._process: subprocess.Popen[str]

    def __enter__(self) -> Self:
        python = _install(self._name)
        asyncio.run(_execute(self._admin, f'CREATE DATABASE "{self._database}"'))
        url = urlunsplit(urlsplit(self._admin)._replace(path=f"/{self._database}", query=""))
        self._process = subprocess.Popen(
            [python, str(_PEERS / self._name / "peer.py"), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self._answer()
        except PeerUnavailable:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        asyncio.run(_execute(self._admin, f'DROP DATABASE IF EXISTS "{self._database}" WITH (FORCE)'))

    def ask(self, line: str) -> dict[str, Any]:
        """Send a line, wait for the answer.

        Raises:
            PeerUnavailable: it has ended.
        """
        if self._process.stdin is None:
            raise PeerUnavailable("no input")
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            raise PeerUnavailable("the peer ended, see its message above")
        found: dict[str, Any] = json.loads(line)
        return found


def _install(name: str) -> str:
    environment = _BUILD / f"{name}-venv"
    python, marker = environment / "bin" / "python", environment / ".complete"
    requirements = _PEERS / name / "requirements.txt"
    wanted = requirements.read_text(encoding="utf-8")
    if marker.is_file() and marker.read_text(encoding="utf-8") == wanted:
        return str(python)
    steps = (
        [sys.executable, "-m", "venv", str(environment)],
        [str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements)],
    )
    try:
        for step in steps:
            subprocess.run(step, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise PeerUnavailable(f"{name} cannot be installed here: {error.stderr.strip()[-300:]}") from error
    marker.write_text(wanted, encoding="utf-8")
    return str(python)


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
