"""Runs the Wagtail peer in an environment of its own, made when it is first asked for; no dependency of the project."""

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

_FOLDER = Path(__file__).parent / "peers" / "wagtail"
_ENVIRONMENT = Path(__file__).resolve().parents[2] / "build" / "wagtail-venv"


class PeerMissing(Exception):
    """The peer cannot be installed or started here; the message says why."""


class WagtailPeer:
    """A process that carries out one operation at a time.

    Args:
        admin_url: of an administrator of the server both sides are measured on.
    """

    def __init__(self, admin_url: str) -> None:
        self._admin = admin_url
        self._database = f"bench_wagtail_{secrets.token_hex(4)}"
        self._process: subprocess.Popen[str]

    def __enter__(self) -> Self:
        python = _install()
        asyncio.run(_execute(self._admin, f'CREATE DATABASE "{self._database}"'))
        url = urlunsplit(urlsplit(self._admin)._replace(path=f"/{self._database}", query=""))
        self._process = subprocess.Popen(
            [python, str(_FOLDER / "peer.py"), url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            self._answer()
        except PeerMissing:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        asyncio.run(_execute(self._admin, f'DROP DATABASE IF EXISTS "{self._database}" WITH (FORCE)'))

    def seconds(self, operation: str) -> float:
        """Duration of one."""
        return float(self._ask(f"time {operation}")["seconds"])

    def statements(self, operation: str) -> int:
        """How many statements one sends."""
        return int(self._ask(f"count {operation}")["statements"])

    def _ask(self, line: str) -> dict[str, Any]:
        if self._process.stdin is None:
            raise PeerMissing("no input")
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            raise PeerMissing("the peer ended, see its message above")
        found: dict[str, Any] = json.loads(line)
        return found


def _install() -> str:
    python = _ENVIRONMENT / "bin" / "python"
    marker = _ENVIRONMENT / ".complete"
    wanted = (_FOLDER / "requirements.txt").read_text(encoding="utf-8")
    if marker.is_file() and marker.read_text(encoding="utf-8") == wanted:
        return str(python)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(_ENVIRONMENT)], check=True, capture_output=True, text=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "-r", str(_FOLDER / "requirements.txt")],
            check=True,
            capture_output=True,
            text=True,
        )
    except subprocess.CalledProcessError as error:
        raise PeerMissing(f"Wagtail cannot be installed here: {error.stderr.strip()[-300:]}") from error
    marker.write_text(wanted, encoding="utf-8")
    return str(python)


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
