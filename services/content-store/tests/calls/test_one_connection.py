"""A call whose record tables are not all on its connection is not run (S-60)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from content_store.calls.one_connection import TablesElsewhere
from remit_contracts.actor import ActorContext
from remit_contracts.calls import CallOutcome, OpenRequest, RehearsalRequest, RehearsedCallRequest
from remit_harness.databases import database_url
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request, update

HEADER = "SELECT header FROM tt_content WHERE uid = 9"
MAPPED = (
    "ALTER TABLE sys_redirect RENAME TO moved_away",
    "CREATE FOREIGN DATA WRAPPER elsewhere",
    "CREATE SERVER elsewhere FOREIGN DATA WRAPPER elsewhere",
    "CREATE FOREIGN TABLE sys_redirect (uid bigint) SERVER elsewhere",
)
VIEWED = ("ALTER TABLE sys_redirect RENAME TO moved_away", "CREATE VIEW sys_redirect AS SELECT * FROM moved_away")


async def mapped(store: TestStore, postgres: str, statements: tuple[str, ...]) -> TestStore:
    """One table lies elsewhere from the start of the process."""
    url = database_url(postgres, urlsplit(store.owner_url).path.lstrip("/"))
    admin = await asyncpg.connect(url)
    try:
        for statement in statements:
            await admin.execute(statement)
    finally:
        await admin.close()
    return store


@pytest.mark.req("S-60")
@pytest.mark.parametrize("statements", [MAPPED, VIEWED, ("DROP TABLE sys_redirect",)], ids=["foreign", "view", "gone"])
async def test_with_a_table_elsewhere_no_call_runs(new_store: Any, postgres: str, statements: tuple[str, ...]) -> None:
    store = await mapped(await new_store(), postgres, statements)
    request = apply_request(update("tt_content", 9, header="in"))
    with pytest.raises(TablesElsewhere) as refused:
        await store.service.apply(uuid7(), request)
    assert refused.value.members == {"tables": ["sys_redirect"]}
    context: dict[str, Any] = {"run_id": uuid7(), "lease_epoch": 1, "actor": ActorContext(user_uid=1)}
    with pytest.raises(TablesElsewhere):
        await store.open_calls().open(uuid7(), OpenRequest(tool="t", **context))
    call = RehearsedCallRequest(key="1", tool="t", operations=request.operations)
    with pytest.raises(TablesElsewhere):
        await store.rehearsals.rehearse(uuid7(), RehearsalRequest(calls=[call], **context))
    assert await store.value(HEADER) == "Hours"
    assert await store.value("SELECT count(*) FROM call_outcome") == 0


@pytest.mark.req("S-60")
async def test_control_with_all_tables_here_it_runs_and_is_asked_for_once(new_store: Any) -> None:
    store: TestStore = await new_store()
    counts = []
    for header in ("one", "two", "three"):
        with store.counter.measure() as counter:
            result = await store.service.apply(uuid7(), apply_request(update("tt_content", 9, header=header)))
        assert result.outcome is CallOutcome.COMMITTED
        counts.append(sum("pg_inherits" in statement for statement in counter.statements))
    assert counts == [1, 0, 0]
