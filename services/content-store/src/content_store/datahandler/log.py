"""What a run reports for administrators (SEMANTICS 19): collected, written with one statement at its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from content_store.records.gateway import RecordGateway


def storable(text: str) -> str:
    """The text without what a text column cannot hold (names in refused entries come from outside)."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


class LogAction(IntEnum):
    """Values of ``action``."""

    INSERT = 1
    UPDATE = 2
    DELETE = 3
    MOVE = 4
    CHECK = 5
    LOCALIZE = 6
    VERSIONIZE = 7
    PUBLISH = 8
    DISCARD = 9


class LogLevel(IntEnum):
    """Values of ``error``."""

    MESSAGE = 0
    USER_ERROR = 1
    SYSTEM_ERROR = 2
    WARNING = 4


@dataclass(frozen=True)
class LogEntry:
    """One row of ``sys_log`` to be written; ``details`` is a template with ``{name}`` marks, ``data`` fills them."""

    tstamp: int
    action: LogAction
    level: LogLevel
    table: str
    uid: int
    details: str
    data: Mapping[str, Any] = field(default_factory=dict)
    page: int = -1
    code: str = ""

    @property
    def text(self) -> str:
        """Details with the marks filled."""
        text = self.details
        for name, value in self.data.items():
            text = text.replace("{" + name + "}", str(value))
        return text


class LogCollector:
    """Entries of a run, in order."""

    def __init__(self, user: int, workspace: int) -> None:
        self._user = user
        self._workspace = workspace
        self.entries: list[LogEntry] = []
        self.error_log: list[str] = []

    def add(self, entry: LogEntry) -> None:
        """Collects one entry; errors and warnings are also kept as text."""
        self.entries.append(entry)
        if entry.level is not LogLevel.MESSAGE:
            self.error_log.append(entry.text)

    async def flush(self, gateway: RecordGateway) -> None:
        """Writes all entries."""
        entries, self.entries = self.entries, []
        if not entries:
            return
        await gateway.fetch(
            f"INSERT INTO {gateway.table('sys_log')} (tstamp, userid, type, action, error, recuid, tablename, details, "
            "log_data, event_pid, code, workspace) "
            "SELECT e.t, $10, 1, e.a, e.l, e.r, e.n, e.d, e.j::jsonb, e.p, e.c, $11 FROM unnest($1::bigint[], "
            "$2::smallint[], $3::smallint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[], "
            "$9::text[]) WITH ORDINALITY AS e(t, a, l, r, n, d, j, p, c, position) ORDER BY e.position",
            [e.tstamp for e in entries],
            [int(e.action) for e in entries],
            [int(e.level) for e in entries],
            [e.uid for e in entries],
            [storable(e.table) for e in entries],
            [storable(e.details) for e in entries],
            [json.dumps({k: storable(str(v)) for k, v in e.data.items()}) for e in entries],
            [e.page for e in entries],
            [e.code for e in entries],
            self._user,
            self._workspace,
        )
