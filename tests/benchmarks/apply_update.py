"""An update of one record by ``apply`` over HTTP, against the same rows by the bare driver."""

from __future__ import annotations

import asyncio
import time

import asyncpg
from figures import Figure, median_ms
from raw_rows import RawRows
from remit_harness.stacks import TestStack
from remit_local.services import STORE
from store_calls import StoreCalls

GOAL = 4.0


def apply_update(stack: TestStack, rounds: int) -> Figure:
    """Both in turns, so that both meet the same machine."""
    page = stack.page("Cycling")
    with StoreCalls(stack, page) as calls:
        calls.update("warm")
        applied, raw = asyncio.run(_both(stack, calls, page, rounds))
    return Figure(
        "apply_update", median_ms(applied), median_ms(raw), GOAL, "the same rows by raw asyncpg in one transaction"
    )


async def _both(stack: TestStack, calls: StoreCalls, page: int, rounds: int) -> tuple[list[float], list[float]]:
    applied: list[float] = []
    raw: list[float] = []
    connection = await asyncpg.connect(stack.database_urls[STORE])
    rows = RawRows(connection, page)
    try:
        await rows.prepare()
        for number in range(rounds):
            begin = time.perf_counter()
            calls.update(f"Title {number}")
            applied.append(time.perf_counter() - begin)
            raw.append(await rows.write(f"Raw {number}"))
    finally:
        await connection.close()
    return applied, raw
