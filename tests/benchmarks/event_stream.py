"""A conversation's server-sent events, read beside the measurement as a browser does."""

from __future__ import annotations

import http.client
import queue
import threading
from datetime import UTC, datetime
from typing import Self
from urllib.parse import urlsplit

from remit_local.clients import ChatClient

WAIT_SECONDS = 30.0


class EventStream:
    """What one conversation tells, in the order it came.

    Args:
        chat: logged in; its address and token are used.
        conversation: its id.
    """

    def __init__(self, chat: ChatClient, conversation: str) -> None:
        self._http = http.client.HTTPConnection(urlsplit(chat.base_url).netloc, timeout=WAIT_SECONDS * 4)
        self._path = f"/v1/conversations/{conversation}/events"
        self._token = chat.token
        self._events: queue.SimpleQueue[tuple[str, datetime]] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        self._http.request("GET", self._path, headers={"Authorization": f"Bearer {self._token}"})
        answer = self._http.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"no stream: {answer.status}")
        # The thread ends with the process: closing a socket another thread reads from would only be a race.
        threading.Thread(target=self._read, args=(answer,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._http.sock is not None:
            self._http.sock.close()

    def forget(self) -> None:
        """Drop what has come so far."""
        while not self._events.empty():
            self._events.get_nowait()

    def wait_for(self, kind: str) -> datetime:
        """When the next event of a kind came.

        Raises:
            TimeoutError: none did.
        """
        while True:
            try:
                found, at = self._events.get(timeout=WAIT_SECONDS)
            except queue.Empty:
                raise TimeoutError(f"no event {kind} came") from None
            if found == kind:
                return at

    def _read(self, answer: http.client.HTTPResponse) -> None:
        try:
            while line := answer.readline():
                if line.startswith(b"event: "):
                    self._events.put((line[7:].decode().strip(), datetime.now(UTC)))
        except (OSError, ValueError, http.client.HTTPException):
            return
