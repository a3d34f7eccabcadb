"""An HTTP proxy in front of a service: holds a request back, or loses the answer to one."""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

WAIT_SECONDS = 120.0
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})


@dataclass
class Trap:
    """One request to be treated in another way than the rest: the first whose method and path match.

    Attributes:
        pattern: matched against ``METHOD path``.
        held: keep it from the service until :meth:`release`.
        lost: hand its answer to nobody.
        then: called once the answer is there, before the connection is cut.
        caught: set when the request arrived.
        answered: set when the service answered it.
    """

    pattern: str
    held: bool = False
    lost: bool = False
    then: Callable[[], None] | None = None
    caught: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)
    status: int = 0
    body: bytes = b""
    _released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Let the held request go on."""
        self._released.set()

    def wait_released(self) -> None:
        """Block until :meth:`release`."""
        self._released.wait(WAIT_SECONDS)


class HttpProxy:
    """Forwards to ``upstream``; one trap at a time.

    Attributes:
        upstream: base address of the service; none = not known yet.
        seen: ``METHOD path`` of every request, in order.
    """

    def __init__(self) -> None:
        self.upstream: str | None = None
        self.seen: list[str] = []
        self._trap: Trap | None = None
        self._lock = threading.Lock()
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Its own base address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def set(self, trap: Trap) -> Trap:
        """Treat the next matching request so."""
        with self._lock:
            self._trap = trap
        return trap

    def take(self, request: str) -> Trap | None:
        """Note a request; the trap it falls into."""
        with self._lock:
            self.seen.append(request)
            trap = self._trap
            if trap is not None and re.search(trap.pattern, request):
                self._trap = None
                return trap
        return None

    def clear(self) -> None:
        """No trap."""
        with self._lock:
            self._trap = None

    def count(self, pattern: str, since: int = 0) -> int:
        """How many requests after the first ``since`` matched."""
        return sum(re.search(pattern, request) is not None for request in self.seen[since:])

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: HttpProxy

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        trap = self.owner.take(f"{self.command} {self.path}")
        if trap is not None:
            trap.caught.set()
            if trap.held:
                trap.wait_released()
        try:
            status, headers, answer = self._ask(body)
        except OSError as error:
            status, headers, answer = 502, {}, repr(error).encode()
        except http.client.HTTPException as error:
            status, headers, answer = 502, {}, repr(error).encode()
        if trap is not None:
            trap.status, trap.body = status, answer
            if trap.then is not None:
                trap.then()
            trap.answered.set()
            if trap.lost:
                self.close_connection = True
                return
        with contextlib.suppress(ConnectionError):
            self._answer(status, headers, answer)

    def _ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if self.owner.upstream is None:
            return 503, {}, b""
        target = urlsplit(self.owner.upstream)
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=WAIT_SECONDS)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            connection.request(self.command, self.path, body or None, headers)
            response = connection.getresponse()
            kept = {name: value for name, value in response.getheaders() if name.lower() not in _HOP}
            return response.status, kept, response.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: dict[str, str], answer: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if status != 204:
            self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward
