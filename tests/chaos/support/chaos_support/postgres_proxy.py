"""A TCP proxy in front of PostgreSQL that reads the frames and cuts a connection where a rule says so."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit, urlunsplit

APPLIES = "content-store-applies"
VERDICT = "SET verdict = 'committed'"
_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102
_STATEMENTS = frozenset({b"P", b"B", b"Q"})


class Where(Enum):
    """Which part of a statement's way is cut off."""

    BEFORE = "the server never gets the statement"
    AFTER = "the server carries it out, its answer gets lost"
    LATE = "the client is cut off, the server gets the statement later"


@dataclass(frozen=True)
class Frame:
    """One message of a client.

    Attributes:
        kind: its type byte.
        sql: of the statement it is about, where it is about one.
    """

    kind: bytes
    raw: bytes
    sql: str


@dataclass(frozen=True)
class Cut:
    """What a rule wants: where, what to do at that moment, and for ``LATE`` how many seconds later."""

    where: Where
    then: Callable[[], None] | None = None
    seconds: float = 0.0

    def run(self) -> None:
        """Do what is to be done."""
        if self.then is not None:
            self.then()


class Rule:
    """Decides on one transaction of a call: the first of the apply connections that begins one.

    Attributes:
        fired: set once it has cut, and done what it had to.
    """

    def __init__(self, cut: Cut) -> None:
        self.cut = cut
        self.fired = threading.Event()
        self.used = False
        self._wire: Wire | None = None

    def decide(self, wire: Wire, frame: Frame) -> Cut | None:
        """The cut this frame meets."""
        if self.used or wire.application != APPLIES or frame.kind not in _STATEMENTS:
            return None
        if self._wire is None and frame.sql.startswith("BEGIN"):
            self._wire = wire
        if self._wire is not wire or not self.meets(wire, frame):
            return None
        self.used = True
        return self.cut

    def meets(self, wire: Wire, frame: Frame) -> bool:
        """Is this the frame?"""
        raise NotImplementedError


class AtPosition(Rule):
    """The n-th message of the transaction that prepares or runs a statement, counted from its BEGIN (1)."""

    def __init__(self, position: int, cut: Cut) -> None:
        super().__init__(cut)
        self._left = position
        self.sql = ""

    def meets(self, wire: Wire, frame: Frame) -> bool:
        """Count down."""
        self._left -= 1
        self.sql = frame.sql
        return self._left == 0


class AtCommit(Rule):
    """The COMMIT of a transaction that holds the verdict of a call."""

    def meets(self, wire: Wire, frame: Frame) -> bool:
        """Is it that COMMIT?"""
        return frame.sql.startswith("COMMIT") and wire.judged


class PostgresProxy:
    """Forwards to a server; ``rule`` may cut.

    Args:
        url: of the server.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.target = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self.rule: Rule | None = None
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def url(self, url: str) -> str:
        """The address of a database behind this proxy."""
        parts = urlsplit(url)
        account = parts.netloc.rpartition("@")[0]
        netloc = f"{account}@127.0.0.1:{self._listener.getsockname()[1]}"
        return urlunsplit((parts.scheme, netloc, parts.path, parts.query, parts.fragment))

    def decide(self, wire: Wire, frame: Frame) -> tuple[Rule, Cut] | None:
        """Ask the rule."""
        with self._lock:
            rule = self.rule
            cut = rule.decide(wire, frame) if rule is not None else None
        return (rule, cut) if rule is not None and cut is not None else None

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self.target, timeout=10)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        with client, server, contextlib.suppress(OSError):
            Wire(self, client, server).serve()

    def close(self) -> None:
        """Take no new connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@dataclass(eq=False)
class Wire:
    """One connection.

    Attributes:
        application: as the client named itself.
        judged: its transaction wrote the verdict of a call.
    """

    proxy: PostgresProxy
    client: socket.socket
    server: socket.socket
    application: str = ""
    judged: bool = False
    _prepared: dict[bytes, str] = field(default_factory=dict)
    _deaf: tuple[Rule, Cut] | None = None
    _whole: bool = False

    def serve(self) -> None:
        """Until one of both ends."""
        if not self._start():
            return
        answers = threading.Thread(target=self._answers, daemon=True)
        answers.start()
        try:
            self._questions()
        finally:
            if self._deaf is None:
                _hang_up(self.server)
            answers.join()
            _hang_up(self.client)

    def _start(self) -> bool:
        while True:
            head = _exactly(self.client, 4)
            if head is None:
                return False
            body = _exactly(self.client, struct.unpack("!i", head)[0] - 4)
            if body is None:
                return False
            code = struct.unpack("!i", body[:4])[0]
            if code in (_SSL, _GSS):
                self.client.sendall(b"N")
                continue
            self.server.sendall(head + body)
            if code == _CANCEL:
                return False
            words = body[4:].split(b"\0")
            settings = dict(zip(words[::2], words[1::2], strict=False))
            self.application = settings.get(b"application_name", b"").decode()
            return True

    def _questions(self) -> None:
        while (frame := self._frame()) is not None:
            met = self.proxy.decide(self, frame)
            if met is None:
                self.server.sendall(frame.raw)
                continue
            rule, cut = met
            if cut.where is Where.BEFORE:
                cut.run()
                _hang_up(self.client)
                _hang_up(self.server)
                rule.fired.set()
                return
            self._whole = frame.kind != b"P"
            self._deaf = met
            if cut.where is Where.LATE:
                cut.run()
                _hang_up(self.client)
                time.sleep(cut.seconds)
                self.server.sendall(frame.raw)
                return
            self.server.sendall(frame.raw)

    def _frame(self) -> Frame | None:
        head = _exactly(self.client, 5)
        if head is None:
            return None
        body = _exactly(self.client, struct.unpack("!i", head[1:])[0] - 4)
        if body is None:
            return None
        kind, sql = head[:1], ""
        if kind == b"Q":
            sql = body.rstrip(b"\0").decode("utf-8", "replace")
        elif kind == b"P":
            name, text = body.split(b"\0", 2)[:2]
            sql = text.decode("utf-8", "replace")
            self._prepared[name] = sql
        elif kind == b"B":
            sql = self._prepared.get(body.split(b"\0", 2)[1], "")
        if sql.startswith("BEGIN"):
            self.judged = False
        elif kind == b"B" and VERDICT in sql:
            self.judged = True
        return Frame(kind, head + body, sql)

    def _answers(self) -> None:
        with contextlib.suppress(OSError):
            while (head := _exactly(self.server, 5)) is not None:
                body = _exactly(self.server, struct.unpack("!i", head[1:])[0] - 4)
                if body is None:
                    break
                if self._deaf is None:
                    self.client.sendall(head + body)
                elif head[:1] == b"Z" or (not self._whole and head[:1] in (b"T", b"n", b"E")):
                    break
        if self._deaf is not None:
            rule, cut = self._deaf
            if cut.where is Where.AFTER:
                cut.run()
            _hang_up(self.server)
            _hang_up(self.client)
            rule.fired.set()
        _hang_up(self.client)


def _exactly(source: socket.socket, size: int) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        part = source.recv(size - len(found))
        if not part:
            return None
        found += part
    return bytes(found)


def _hang_up(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
