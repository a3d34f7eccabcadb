"""Serves an application beside a program's own work: the program, not the server, listens to signals."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import uvicorn
from fastapi import FastAPI

GRACEFUL_SECONDS = 2
_LOOK = 0.01


class _QuietServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals stay with the program."""
        yield


class ServerFailedError(Exception):
    """The server ended while it was needed, or never began (its port is taken)."""


@contextlib.asynccontextmanager
async def serving(app: FastAPI, host: str, port: int) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port, a free one where 0 was asked for.

    Raises:
        ServerFailedError: the port cannot be had.
    """
    config = uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, timeout_graceful_shutdown=GRACEFUL_SECONDS
    )
    server = _QuietServer(config)
    running = asyncio.create_task(_serve(server, host, port))
    try:
        while not server.started:
            if running.done():
                await running
            await asyncio.sleep(_LOOK)
        yield int(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        await asyncio.gather(running, return_exceptions=True)


async def _serve(server: uvicorn.Server, host: str, port: int) -> None:
    try:
        await server.serve()
    except SystemExit as error:
        # The server ends the whole program where it cannot begin; whoever asked for it decides about that.
        raise ServerFailedError(f"{host}:{port} cannot be served") from error
    if not server.should_exit:
        raise ServerFailedError(f"{host}:{port} is not served any more")
