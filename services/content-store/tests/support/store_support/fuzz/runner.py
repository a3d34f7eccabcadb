"""Runs generated calls against a real store and compares every record table before and after (S-84, V-01)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import asyncpg
from content_store.schema.ddl import qualified_name
from remit_contracts.actor import ActorContext
from remit_contracts.calls import (
    CallOutcome,
    CallResult,
    OpenRequest,
    RehearsalRequest,
    RehearsedCall,
    RehearsedCallRequest,
)
from service_kit.ids import uuid7
from service_kit.problems import ProblemError

from store_support.calls import TestStore, apply_request, reset
from store_support.fuzz.generator import GeneratedCall, Generator
from store_support.fuzz.hooks import Once
from store_support.fuzz.oracle import Findings, Snapshot, judge
from store_support.fuzz.seed import FUZZ_SEED

CALLS_PER_TREE = 25
REPORTED_EVERY = 500


@dataclass
class Tally:
    """What a run found.

    Attributes:
        problems: one line per call that did something wrong, enough to look into it.
        outcomes: how often each outcome was seen.
        changing: calls that committed at least one changed row.
        refusing: calls in which layer two refused something.
        violating: calls the verdict undid.
        stayed: rehearsals after which something differed.
    """

    calls: int = 0
    escapes: int = 0
    changed: int = 0
    missed: int = 0
    listed: int = 0
    invented: int = 0
    changing: int = 0
    refusing: int = 0
    violating: int = 0
    stayed: int = 0
    problems: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, findings: Findings, result: CallResult | None, what: str) -> None:
        """One more call."""
        self.calls += 1
        self.escapes += len(findings.escapes)
        self.missed += len(findings.missed)
        self.invented += len(findings.invented)
        self.changed += findings.changed
        self.listed += findings.listed
        self.changing += findings.changed > 0
        if result is not None:
            self.refusing += any(not refused.undone for refused in result.changes.refused)
            self.violating += result.reason is not None and result.reason.value == "violation"
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

    @property
    def clean(self) -> bool:
        """Nothing wrong was found."""
        return not (self.escapes or self.missed or self.invented or self.stayed)

    def mix(self) -> str:
        """How the calls ended, so that a run of nothing but refusals is seen as one."""
        shares = ", ".join(
            f"{round(100 * count / max(self.calls, 1))} % {name}"
            for name, count in (
                ("changed rows", self.changing),
                ("undone as violations", self.violating),
                ("with refusals", self.refusing),
            )
        )
        return f"{shares}; {self.changed} rows changed; {json.dumps(dict(self.outcomes.most_common()))}"

    def __str__(self) -> str:
        return f"{self.calls} calls, {self.escapes} escapes, recall {self.recall:.4f}, precision {self.precision:.4f}"


class Observer:
    """Takes snapshots, as the owner."""

    def __init__(self, connection: Any, store: TestStore) -> None:
        self._connection = connection
        self._sql = " UNION ALL ".join(
            f"SELECT '{t}', uid, to_jsonb(t)::text FROM {qualified_name(t)} AS t" for t in store.env.schema.tables
        )
        self._relations = "SELECT 'mm', uid_local, uid_foreign, tablenames FROM sys_category_record_mm"
        self._texts: dict[tuple[str, int], str] = {}
        self._rows: dict[tuple[str, int], dict[str, Any]] = {}

    async def snapshot(self) -> Snapshot:
        """Every row there is; texts that did not change are not read again."""
        texts = {(r[0], r[1]): r[2] for r in await self._connection.fetch(self._sql)}
        rows = {
            key: self._rows[key] if self._texts.get(key) == text else json.loads(text) for key, text in texts.items()
        }
        self._texts, self._rows = texts, rows
        relations = frozenset(tuple(r) for r in await self._connection.fetch(self._relations))
        return Snapshot(dict(rows), relations)


class Fuzz:
    """A run of generated calls.

    Args:
        store: on a database that holds nothing else.
        seed: of the generator.
    """

    def __init__(self, store: TestStore, seed: int) -> None:
        self._store = store
        self._generator = Generator(seed)
        self.tally = Tally()

    async def run(self, calls: int, progress: Callable[[str], None] | None = None) -> Tally:
        """So many calls; the site starts anew every few of them.

        Args:
            calls: how many.
            progress: told now and then how far it is.
        """
        connection = await asyncpg.connect(self._store.owner_url)
        try:
            observer = Observer(connection, self._store)
            for number in range(calls):
                if number % CALLS_PER_TREE == 0:
                    await reset(self._store.owner_url, self._store.env.schema, FUZZ_SEED)
                    before = await observer.snapshot()
                before = await self._one(observer, before, number)
                if progress is not None and (number + 1) % REPORTED_EVERY == 0:
                    progress(str(self.tally))
        finally:
            await connection.close()
        return self.tally

    async def _one(self, observer: Observer, before: Snapshot, number: int) -> Snapshot:
        call = self._generator.call(before)
        store = self._store.with_env(
            limits=replace(self._store.env.limits, max_changes=call.list_limit), hooks=_hooks(call)
        )
        result: CallResult | None = None
        what = f"call {number} {call.way} by {call.user}, scope {call.scope}, {call.operations}, {call.hook and vars(call.hook)['name']}"
        try:
            result = await self._send(store, call, observer, before, what)
            outcome = f"{call.way} {result.outcome.value} {result.reason.value if result.reason else ''}".strip()
        except ProblemError as error:
            outcome = f"{call.way} {error.code}"
        self.tally.outcomes[outcome] += 1
        after = await observer.snapshot()
        named = _named(call) + 20 * (call.hook is not None)
        self.tally.add(judge(call.scope, before, after, result, named=named), result, f"{what} -> {result}")
        return after

    async def _send(
        self, store: TestStore, call: GeneratedCall, observer: Observer, before: Snapshot, what: str
    ) -> CallResult:
        if call.way == "open":
            return await _opened(store, call)
        shown: RehearsedCall | None = None
        if call.way == "rehearse":
            shown = await _rehearsed(store, call)
            if await observer.snapshot() != before:
                self.tally.stayed += 1
                self.tally.problems.append(f"something of a rehearsal stayed: {what}")
        values: dict[str, Any] = {}
        if shown is not None and shown.outcome is CallOutcome.COMMITTED:
            values["shown"] = list(shown.shown)
        return await store.service.apply(
            uuid7(), apply_request(*call.operations, scope=call.scope, user=call.user, **values)
        )


def _hooks(call: GeneratedCall) -> Any:
    hook = call.hook
    return tuple if not isinstance(hook, Once) else lambda: (hook.again(),)


def _named(call: GeneratedCall) -> int:
    maps = [getattr(o, "datamap", None) or getattr(o, "cmdmap", None) or {} for o in call.operations]
    # Translations and children come along with an entry.
    return 4 * sum(len(rows) for one in maps for rows in one.values())


async def _rehearsed(store: TestStore, call: GeneratedCall) -> RehearsedCall:
    request = RehearsalRequest(
        run_id=uuid7(),
        lease_epoch=1,
        actor=ActorContext(user_uid=call.user),
        scope=call.scope,
        calls=[RehearsedCallRequest(key="1", tool="test_tool", operations=call.operations)],
    )
    return (await store.rehearsals.rehearse(uuid7(), request)).calls[0]


async def _opened(store: TestStore, call: GeneratedCall) -> CallResult:
    calls = store.open_calls()
    call_id = uuid7()
    request = OpenRequest(
        run_id=uuid7(), lease_epoch=1, actor=ActorContext(user_uid=call.user), scope=call.scope, tool="test_tool"
    )
    opened = await calls.open(call_id, request)
    token, sequence = opened.token, opened.sequence
    try:
        for operation in call.operations:
            answer = await calls.operations(call_id, token, sequence, [operation])
            token, sequence = answer.token, answer.sequence
        return await calls.commit(call_id, token, sequence)
    finally:
        await calls.close()
