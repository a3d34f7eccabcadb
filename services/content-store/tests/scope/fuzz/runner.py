"""Runs generated calls against a real store and compares every record table before and after (S-84, V-01).

``python runner.py CALLS SEED`` prints ``N calls, E escapes, recall R, precision P`` and fails unless E is 0 and both are 1.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

sys.path.insert(0, str(Path(__file__).parent))

from content_store.calls.errors import CallConflict, CallLocked
from content_store.calls.testing import TestStore, apply_request, build_template, open_test_store, reset
from content_store.schema.ddl import qualified_name
from generator import Generator
from oracle import Findings, Oracle, Snapshot, judge
from remit_contracts.calls import CallResult
from service_kit.ids import uuid7
from service_kit.logging import configure_logging

CALLS_PER_TREE = 40


@dataclass
class Tally:
    """What a run found.

    Attributes:
        problems: one line per call that did something wrong, enough to look into it.
        outcomes: how often each outcome was seen.
    """

    calls: int = 0
    escapes: int = 0
    changed: int = 0
    missed: int = 0
    listed: int = 0
    invented: int = 0
    problems: list[str] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)

    def add(self, findings: Findings, what: str) -> None:
        """One more call."""
        self.calls += 1
        self.escapes += len(findings.escapes)
        self.missed += len(findings.missed)
        self.invented += len(findings.invented)
        self.changed += findings.changed
        self.listed += findings.listed
        if findings.escapes or findings.missed or findings.invented:
            self.problems.append(
                f"escapes {findings.escapes} missed {findings.missed} invented {findings.invented}: {what}"
            )

    @property
    def recall(self) -> float:
        """Part of the changed rows that was listed or counted."""
        return 1.0 if not self.missed else 1 - self.missed / max(self.changed + self.missed, 1)

    @property
    def precision(self) -> float:
        """Part of the listed rows that did change."""
        return 1.0 if not self.invented else 1 - self.invented / max(self.listed, self.invented)

    def __str__(self) -> str:
        return f"{self.calls} calls, {self.escapes} escapes, recall {self.recall:.4f}, precision {self.precision:.4f}"


class Observer:
    """Takes snapshots, as the owner."""

    def __init__(self, connection: Any, store: TestStore) -> None:
        self._connection = connection
        self._sql = " UNION ALL ".join(
            f"SELECT '{t}', uid, to_jsonb(t)::text FROM {qualified_name(t)} AS t" for t in store.env.schema.tables
        )
        self._relations = " UNION ALL ".join(
            f"SELECT '{t}', uid_local, uid_foreign, tablenames FROM {qualified_name(t)}"
            for t in ("sys_category_record_mm",)
        )

    async def snapshot(self) -> Snapshot:
        """Every row there is."""
        rows = {(r[0], r[1]): json.loads(r[2]) for r in await self._connection.fetch(self._sql)}
        relations = frozenset(tuple(r) for r in await self._connection.fetch(self._relations))
        return Snapshot(rows, relations)


async def run(store: TestStore, calls: int, seed: int) -> Tally:
    """Run so many generated calls; the tree starts anew every forty."""
    tally, generator = Tally(), Generator(seed)
    connection = await asyncpg.connect(store.owner_url)
    try:
        observer = Observer(connection, store)
        for number in range(calls):
            if number % CALLS_PER_TREE == 0:
                await reset(store.owner_url, store.env.schema)
                before = await observer.snapshot()
            before = await _one(store, generator, observer, before, tally, number)
    finally:
        await connection.close()
    return tally


async def _one(
    store: TestStore, generator: Generator, observer: Observer, before: Snapshot, tally: Tally, number: int
) -> Snapshot:
    generator.known = {}
    for table, uid in sorted(before.rows):
        generator.known.setdefault(table, []).append(uid)
    scope = generator.scope()
    if scope is not None:
        inside = Oracle(scope, before)
        for key, row in sorted(before.rows.items()):
            if inside.inside(key, row) and inside.narrowed(key, row):
                generator.inside.setdefault(key[0], []).append(key[1])
    operations, hook = generator.operations(), generator.hook()
    hooked = store.with_hooks(hook) if hook is not None else store
    result: CallResult | None = None
    try:
        result = await hooked.service.apply(uuid7(), apply_request(*operations, scope=scope))
        outcome = f"{result.outcome.value} {result.reason.value if result.reason else ''}"
    except (CallConflict, CallLocked) as error:
        outcome = error.code
    tally.outcomes[outcome.strip()] = tally.outcomes.get(outcome.strip(), 0) + 1
    after = await observer.snapshot()
    what = f"call {number} scope {scope} operations {operations} hook {hook and vars(hook)} result {result}"
    tally.add(judge(scope, before, after, result), what)
    return after


async def with_store(work: Callable[[TestStore], Awaitable[Tally]]) -> Tally:
    """A store on a database of its own, on the server of ``REMIT_TEST_POSTGRES``."""
    server = os.environ["REMIT_TEST_POSTGRES"]
    name = f"dcalls_fuzz_{secrets.token_hex(4)}"
    admin = await asyncpg.connect(server)
    try:
        await admin.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        url = f"{server.rsplit('/', 1)[0]}/{name}"
        await build_template(url)
        store = await open_test_store(url, server_url=server)
        try:
            return await work(store)
        finally:
            await store.close()
    finally:
        await admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await admin.close()


def main(arguments: list[str]) -> int:
    """Run, print, and say with the exit code whether all is well."""
    calls, seed = int(arguments[0]), int(arguments[1])
    tally = asyncio.run(with_store(lambda store: run(store, calls, seed)))
    for problem in tally.problems[:10]:
        sys.stdout.write(f"{problem}\n")
    sys.stdout.write(
        f"seed {seed}, outcomes {json.dumps(tally.outcomes, sort_keys=True)}, {tally.changed} rows changed\n{tally}\n"
    )
    return 0 if not (tally.escapes or tally.missed or tally.invented) else 1


if __name__ == "__main__":
    configure_logging("content-store", level="ERROR")
    raise SystemExit(main(sys.argv[1:]))
