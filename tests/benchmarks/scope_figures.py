"""What scope and capture cost one ``apply``, in this process, on stores that differ in one thing each.

Both sides of a figure take turns, and each round begins with the other one, so that both meet the same machine.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
from figures import Figure, median_ms
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot
from remit_harness.databases import Databases
from remit_harness.run import TestRun

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "services" / "content-store" / "tests" / "support"))

from content_store.schema.ddl import qualified_name
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request, build_template, open_test_store, update

Prepare = Callable[[asyncpg.Connection], Awaitable[None]]
HALL = EffectiveAssignmentScope(pages=(PageRoot(page=10, depth=1),))
FEW_HISTORY_ROWS, MANY_HISTORY_ROWS = 1_000, 1_000_000
TREE_PAGES, SCOPED_PAGES, FIRST_PAGE, BRANCHES = 50_000, 50, 100_000, 12
#: The record lies on the last of them, so the walk upwards is as long as the tree is deep.
LAST_PAGE = FIRST_PAGE + TREE_PAGES - 1
RECORD, DEEP_RECORD = 9, 9_000


def scope_figures(admin_url: str, run: TestRun, rounds: int) -> list[Figure]:
    """Scope against none, capture against none, a long history against a short one, a wide tree against a small one."""
    return asyncio.run(_figures(admin_url, run, rounds))


async def _figures(admin_url: str, run: TestRun, rounds: int) -> list[Figure]:
    databases = Databases(admin_url, run)
    stores: list[TestStore] = []

    async def store(prepare: Prepare) -> TestStore:
        template = await databases.template("scope_figures", build_template)
        url = await databases.create("scope_figures", template=template)
        made = await open_test_store(url, server_url=admin_url, prepare=_as_owner(prepare))
        stores.append(made)
        return made

    try:
        usual, bare = await store(_history(FEW_HISTORY_ROWS)), await store(_without_triggers)
        long, wide = await store(_history(MANY_HISTORY_ROWS)), await store(_wide_tree)
        scattered = range(FIRST_PAGE + TREE_PAGES // 2, LAST_PAGE, TREE_PAGES // (2 * (SCOPED_PAGES - 1)))
        roots = [PageRoot(page=uid, depth=1) for uid in [*scattered][: SCOPED_PAGES - 1]]
        fifty = EffectiveAssignmentScope(pages=(*roots, PageRoot(page=LAST_PAGE, depth=0)))
        return [
            await _figure("scope_check", rounds, (usual, HALL), (usual, None), 1.2, "the same call without a scope"),
            await _figure("capture_cost", rounds, (usual, None), (bare, None), 1.5, "a database without its triggers, so without record events too"),
            await _figure("history_growth", rounds, (long, HALL), (usual, HALL), 1.2, "10³ history rows instead of 10⁶"),
            await _figure("wide_scope", rounds, (wide, fifty), (usual, HALL), 1.2, "one scoped page in a tree of 9, instead of 50 in 50 000"),
        ]  # fmt: skip
    finally:
        for made in stores:
            await made.close()
        await databases.drop()
        await databases.drop_template("scope_figures")


Side = tuple[TestStore, EffectiveAssignmentScope | None]


async def _figure(name: str, rounds: int, value: Side, limit: Side, goal: float, words: str) -> Figure:
    numbers = itertools.count()
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for index in (0, 1) if number % 2 else (1, 0):
            taken[index].append(await _apply((value, limit)[index], f"{name} {next(numbers)}"))
    return Figure(name, median_ms(taken[0]), median_ms(taken[1]), goal, words)


async def _apply(side: Side, header: str) -> float:
    store, scope = side
    uid = DEEP_RECORD if scope is not None and len(scope.pages) == SCOPED_PAGES else RECORD
    request = apply_request(update("tt_content", uid, header=header), scope=scope)
    begin = time.perf_counter()
    result = await store.service.apply(uuid7(), request)
    seconds = time.perf_counter() - begin
    if result.outcome != "committed" or result.operations[0].errors:
        raise RuntimeError(f"the call was not carried out: {result}")
    return seconds


def _as_owner(prepare: Prepare) -> Callable[[str], Awaitable[None]]:
    async def work(owner_url: str) -> None:
        connection = await asyncpg.connect(owner_url)
        try:
            async with connection.transaction():
                await prepare(connection)
                await connection.fetchval("SELECT count(*) FROM capture_take()")
            await connection.execute("VACUUM (ANALYZE) sys_history; ")
            await connection.execute("VACUUM (ANALYZE) pages")
        finally:
            await connection.close()

    return work


def _history(rows: int) -> Prepare:
    async def prepare(connection: asyncpg.Connection) -> None:
        await connection.execute(
            "INSERT INTO sys_history (tstamp, actiontype, usertype, userid, tablename, recuid, history_data, correlation_id)"
            " SELECT 1700000000 + n, 2, 'BE', 1, 'tt_content', 1 + n % 5000, '{}', md5(n::text)"
            " FROM generate_series(1, $1::int) AS n",
            rows,
        )

    return prepare


async def _without_triggers(connection: asyncpg.Connection) -> None:
    names = await connection.fetch(
        "SELECT tgrelid::regclass::text AS name, tgname FROM pg_trigger WHERE tgname LIKE 'remit_capture_%'"
    )
    for row in names:
        await connection.execute(f"DROP TRIGGER {row['tgname']} ON {row['name']}")
    await _history(FEW_HISTORY_ROWS)(connection)


async def _wide_tree(connection: asyncpg.Connection) -> None:
    await _history(FEW_HISTORY_ROWS)(connection)
    await connection.execute(
        f"INSERT INTO {qualified_name('pages')} (uid, pid, title, slug, sorting, perms_everybody)"
        " SELECT $1 + n, CASE WHEN n < $3 THEN 1 ELSE $1 + n / $3 END, 'Page ' || n, '/p' || n, n, 31"
        " FROM generate_series(0, $2::bigint - 1) AS n",
        FIRST_PAGE,
        TREE_PAGES,
        BRANCHES,
    )
    await connection.execute(
        "INSERT INTO tt_content (uid, pid, header, sorting, \"CType\") VALUES ($1, $2, 'Deep', 256, 'text')",
        DEEP_RECORD,
        LAST_PAGE,
    )
