"""A real HTTP server in the test's own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

LOCALHOST = "127.0.0.1"


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[str]:
    """Serve an application on a free port; yields its base URL."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOCALHOST, 0))
        port = listener.getsockname()[1]
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            while not server.started:
                if running.done():
                    await running
                await asyncio.sleep(0.005)
            yield f"http://{LOCALHOST}:{port}"
        finally:
            server.should_exit = True
            await running
