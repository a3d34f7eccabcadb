"""The DataHandler's side of the comparison: transaction, rights, history, index, capture, events and commit, in process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import asyncpg
from content_store.access.rights import SYSTEM_USER, AdministratorPolicy
from content_store.capture.grouping import group_rows
from content_store.capture.reader import take_capture
from content_store.capture.relations import relation_ends
from content_store.datahandler.handler import DataHandler, HandlerActor
from content_store.datahandler.result import ProcessResult
from content_store.events.records import Origin, append_record_events, record_changes
from content_store.records.gateway import RecordGateway
from content_store.schema.model import Schema
from service_kit.outbox import Outbox


class StorePages:
    """The same operations as the peer's.

    Args:
        connection: to the store's database.
        schema: it was migrated to.
        root: page to work below.
    """

    def __init__(self, connection: asyncpg.Connection[Any], schema: Schema, root: int) -> None:
        self._connection, self._schema, self._root = connection, schema, root
        self._ends, self._outbox = relation_ends(schema), Outbox()
        self._number = 0
        self._folders: list[int] = []
        self._sources: dict[int, int] = {}
        self._moved = self._edited = 0

    async def prepare(self) -> None:
        """Pages to copy, move and change."""
        self._folders = [await self._make(self._root, 0) for _ in range(2)]
        self._moved = await self._make(self._folders[0], 10)
        self._edited = await self._make(self._root, 10)
        self._sources = {count: await self._make(self._root, count) for count in (10, 100)}

    async def seconds(self, operation: str) -> float:
        """Duration of one."""
        begin = time.perf_counter()
        await getattr(self, operation)()
        return time.perf_counter() - begin

    async def statements(self, operation: str) -> int:
        """How many statements one sends, begin and commit included."""
        sent: list[str] = []
        with self._connection.query_logger(lambda record: sent.append(record.query)):
            await getattr(self, operation)()
        return len(sent)

    async def create(self) -> None:
        """A page with ten elements."""
        await self._make(self._root, 10)

    async def update(self) -> None:
        """One field."""
        self._number += 1
        await self._run({"pages": {str(self._edited): {"title": f"Changed {self._number}"}}}, {})

    async def copy10(self) -> None:
        """A page with ten elements."""
        await self._run({}, {"pages": {str(self._sources[10]): {"copy": self._root}}})

    async def copy100(self) -> None:
        """A page with a hundred elements."""
        await self._run({}, {"pages": {str(self._sources[100]): {"copy": self._root}}})

    async def move(self) -> None:
        """A page with ten elements to another page and the next time back."""
        self._folders.reverse()
        await self._run({}, {"pages": {str(self._moved): {"move": self._folders[0]}}})

    async def _make(self, parent: int, elements: int) -> int:
        self._number += 1
        page = {"pid": parent, "title": f"Bench {self._number}", "description": "x"}
        datamap: dict[str, Any] = {"pages": {"NEWpage": page}}
        if elements:
            # A record goes to the top of its page, so the last one is written first.
            datamap["tt_content"] = {
                f"NEW{n}": {"pid": "NEWpage", "CType": "text", "header": f"Element {n}", "bodytext": "text"}
                for n in reversed(range(elements))
            }
        return (await self._run(datamap, {})).substNEWwithIDs["NEWpage"]

    async def _run(self, datamap: Mapping[str, Any], cmdmap: Mapping[str, Any]) -> ProcessResult:
        async with self._connection.transaction():
            gateway = RecordGateway(self._connection, self._schema)
            policy = AdministratorPolicy(self._schema, gateway)
            result = await DataHandler(gateway, HandlerActor(SYSTEM_USER), policy=policy).process(datamap, cmdmap)
            if result.failed:
                raise RuntimeError(f"not carried out: {result.failed}")
            deltas = group_rows(await take_capture(self._connection, None))
            await append_record_events(self._connection, self._outbox, record_changes(deltas, self._ends, Origin()))
        return result
