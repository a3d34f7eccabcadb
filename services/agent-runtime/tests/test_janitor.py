"""The purge that workers bring along: on its own clock, one of them leads (T-55)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from agent_runtime.runs import janitor as module
from agent_runtime.runs.janitor import Janitor
from agent_runtime.runs.journal import RunJournal
from agent_runtime.runs.retention import Purged, purge_old
from agent_runtime.settings import RuntimeSettings
from runtime_support.stack import RuntimeStack, StartStack
from sqlalchemy import text


async def until(fact: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not fact():  # noqa: ASYNC110 - a fact of another task
            await asyncio.sleep(0.01)


async def cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def settled_long_ago(stack: RuntimeStack) -> str:
    run_id = await stack.start("list pages")
    await stack.worker().run_until_idle()
    async with stack.runtime.database.unit_of_work() as session:
        await session.execute(text("UPDATE run SET settled_at = settled_at - interval '31 days'"))
    return str(run_id)


async def gone(stack: RuntimeStack, run_id: str) -> bool:
    return (await stack.request("GET", f"/v1/runs/{run_id}")).status_code == 404


@pytest.mark.req("T-55")
async def test_a_worker_removes_what_is_old_by_itself(start_stack: StartStack, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Purged] = []
    monkeypatch.setattr(module, "_report", reports.append)
    async with start_stack(purge_interval=0.05) as stack:
        run_id = await settled_long_ago(stack)
        working = asyncio.create_task(stack.worker().run())
        try:
            await until(lambda: len(reports) >= 2)
        finally:
            await cancelled(working)
        assert reports[0].runs == 1
        assert reports[1] == Purged(0, 0, 0, 0)
        assert await gone(stack, run_id)


@pytest.mark.req("T-55")
async def test_an_interval_of_zero_leaves_it_to_the_command(start_stack: StartStack) -> None:
    async with start_stack(purge_interval=0) as stack:
        run_id = await settled_long_ago(stack)
        await asyncio.wait_for(Janitor(stack.runtime.journal, stack.runtime.settings).run(), 30)
        assert not await gone(stack, run_id)


@pytest.mark.req("T-55")
async def test_one_of_several_leads_and_another_takes_over(
    start_stack: StartStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    purges = 0

    async def counted(journal: RunJournal, settings: RuntimeSettings) -> Purged:
        nonlocal purges
        purges += 1
        if purges == 2:
            raise RuntimeError("a fault on purpose")
        return await purge_old(journal, settings)

    monkeypatch.setattr(module, "purge_old", counted)
    async with start_stack(purge_interval=0.05) as stack:
        janitors = [Janitor(stack.runtime.journal, stack.runtime.settings) for _ in range(2)]
        tasks = [asyncio.create_task(janitor.run()) for janitor in janitors]
        try:
            # A purge that fails once is not the last one.
            await until(lambda: purges >= 4)
            assert sum(janitor.leading for janitor in janitors) <= 1
            await until(lambda: any(janitor.leading for janitor in janitors))
            first = 0 if janitors[0].leading else 1
            await cancelled(tasks[first])
            assert not janitors[first].leading
            await until(lambda: janitors[1 - first].leading)
        finally:
            await cancelled(*tasks)
