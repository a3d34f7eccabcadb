"""Flushes reach the caches an installation announces: tags with the transaction, groups after the commit (S-59, S-69)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from content_store.caches.flush import CacheFlusher, CacheFlushFailed, NoCaches, flush_groups
from content_store.caches.hook import CacheFlushHook, read_command
from content_store.caches.installed import InstalledCaches, load_caches
from content_store.datahandler.hooks import DataHandlerHook
from content_store.datahandler.run import HandlerRun
from content_store.records.gateway import RecordGateway
from remit_contracts.actor import ActorContext
from remit_contracts.calls import (
    CallOutcome,
    FlushCache,
    Operation,
    RehearsalRequest,
    RehearsedCallRequest,
    RollbackReason,
)
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot
from service_kit.ids import uuid7
from store_support.calls import TestStore, apply_request, command, update

HALL = EffectiveAssignmentScope(pages=(PageRoot(page=10, depth=1),))
HEADER = "SELECT header FROM tt_content WHERE uid = $1"
ENTRIES = "SELECT string_agg(tag, ' ' ORDER BY tag) FROM cache_entry"
TAGS = ("pageId_10", "pageId_11", "tt_content", "tt_content_9", "other")
MODULE = """
class Cache:
    async def flush_tags(self, gateway, tags):
        await gateway.fetch("DELETE FROM public.cache_entry WHERE tag = ANY($1::text[])", list(tags))

    async def flush_group(self, group):
        flushed.append(group)

flushed = []

class Nothing:
    pass
"""


async def _cache_table(owner_url: str) -> None:
    connection = await asyncpg.connect(owner_url)
    try:
        await connection.execute(
            "CREATE TABLE cache_entry (tag text); GRANT SELECT, INSERT, DELETE ON cache_entry TO PUBLIC"
        )
        await connection.executemany("INSERT INTO cache_entry VALUES ($1)", [(tag,) for tag in TAGS])
    finally:
        await connection.close()


def announce(folder: Path, name: str, **entries: str) -> None:
    """An installed distribution with entry points, as an installer leaves it."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{key} = {value}\n" for key, value in entries.items())
    (info / "entry_points.txt").write_text(f"[content_store.caches]\n{lines}")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "site_caches.py").write_text(MODULE)
    announce(tmp_path, "site-caches", pages="site_caches:Cache")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


async def installed_store(new_store: Any) -> TestStore:
    store: TestStore = await new_store(prepare=_cache_table)
    return store.with_env(caches=load_caches(), hooks=lambda: (CacheFlushHook(),))


def test_nothing_is_flushed_where_nothing_is_installed() -> None:
    assert isinstance(load_caches(), NoCaches)


@pytest.mark.usefixtures("installed")
def test_what_makes_no_cache_is_named(installed: Path) -> None:
    announce(installed, "wrong-caches", broken="site_caches:Nothing")
    with pytest.raises(TypeError, match="broken"):
        load_caches()


@pytest.mark.req("S-59", "S-69")
@pytest.mark.usefixtures("installed")
async def test_a_write_flushes_its_tags_in_place_and_what_its_page_says_after_the_commit(new_store: Any) -> None:
    store = await installed_store(new_store)
    await store.rows("UPDATE pages SET \"TSconfig\" = 'TCEMAIN.clearCacheCmd = pages, 11' WHERE uid = 1")
    flushed: list[str] = import_module("site_caches").flushed
    flushed.clear()
    seen: list[tuple[list[str], str]] = []

    class Looks(DataHandlerHook):
        async def after_all_operations(self, run: HandlerRun) -> None:
            async def after_commit() -> None:
                seen.append((list(flushed), await store.value(HEADER, 9)))

            seen.append((list(flushed), await store.value(HEADER, 9)))
            run.ctx.defer(after_commit)

    looking = store.with_env(hooks=lambda: (CacheFlushHook(), Looks()))
    result = await looking.service.apply(uuid7(), apply_request(update("tt_content", 9, header="in"), scope=HALL))
    assert (result.outcome, result.warnings) == (CallOutcome.COMMITTED, ())
    # Before the commit the group was not flushed, afterwards it is.
    assert (seen[0], seen[-1]) == (([], "Hours"), (["pages"], "in"))
    assert await store.value(ENTRIES) == "other"


@pytest.mark.req("S-59", "S-69")
@pytest.mark.usefixtures("installed")
async def test_a_rollback_drops_the_groups_and_brings_the_tags_back(new_store: Any) -> None:
    store = await installed_store(new_store)
    flushed: list[str] = import_module("site_caches").flushed
    flushed.clear()
    operations = (
        FlushCache(group="pages", tags=["other"]),
        update("tt_content", 9, header="in"),
        update("tt_content", 7, header="x"),
    )
    undone = await store.with_env(scope_hook=False).service.apply(uuid7(), apply_request(*operations, scope=HALL))
    assert undone.reason is RollbackReason.VIOLATION
    assert flushed == []
    assert await store.value(ENTRIES) == " ".join(sorted(TAGS))
    # Control: without a scope the same call flushes both.
    done = await store.service.apply(uuid7(), apply_request(*operations))
    assert (done.outcome, flushed) == (CallOutcome.COMMITTED, ["pages"])
    assert await store.value(ENTRIES) == "pageId_11"


@pytest.mark.req("S-59")
@pytest.mark.usefixtures("installed")
async def test_a_rehearsal_flushes_nothing(new_store: Any) -> None:
    store = await installed_store(new_store)
    flushed: list[str] = import_module("site_caches").flushed
    flushed.clear()
    operations: list[Operation] = [FlushCache(group="all", tags=["other"]), update("tt_content", 9, header="in")]
    request = RehearsalRequest(
        run_id=uuid7(),
        lease_epoch=1,
        actor=ActorContext(user_uid=1),
        calls=[RehearsedCallRequest(key="1", tool="t", operations=operations)],
    )
    (call,) = (await store.rehearsals.rehearse(uuid7(), request)).calls
    assert (call.outcome, flushed) == (CallOutcome.COMMITTED, [])
    assert await store.value(ENTRIES) == " ".join(sorted(TAGS))


@pytest.mark.req("S-59")
@pytest.mark.usefixtures("installed")
async def test_moving_and_deleting_flush_the_page_a_record_leaves(new_store: Any) -> None:
    store = await installed_store(new_store)
    await store.service.apply(uuid7(), apply_request(command("tt_content", 9, "move", 11)))
    assert await store.value(ENTRIES) == "other"


class Fails:
    """Cannot be reached."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def flush_tags(self, gateway: RecordGateway, tags: Sequence[str]) -> None:
        raise self._error

    async def flush_group(self, group: str) -> None:
        raise self._error


@pytest.mark.req("S-59")
@pytest.mark.parametrize("error", [CacheFlushFailed("gone"), OSError("gone"), ValueError("a bug of theirs")])
async def test_a_group_that_fails_after_the_commit_is_a_warning(store: TestStore, error: Exception) -> None:
    request = apply_request(update("tt_content", 9, header="in"), FlushCache(group="all"))
    result = await store.with_env(caches=Fails(error)).service.apply(uuid7(), request)
    assert (result.outcome, result.warnings) == (CallOutcome.COMMITTED, ("flush_failed",))
    assert await store.value(HEADER, 9) == "in"


@pytest.mark.req("S-59", "S-66")
async def test_a_tag_that_cannot_be_flushed_is_an_error_of_its_operation(store: TestStore) -> None:
    operations = (update("tt_content", 9, header="in"), FlushCache(tags=["x"], group="all"))
    result = await store.with_env(caches=Fails(CacheFlushFailed("gone"))).service.apply(
        uuid7(), apply_request(*operations)
    )
    assert (result.outcome, result.warnings) == (CallOutcome.COMMITTED, ())
    assert [error.code for error in result.operations[1].errors] == ["flush_failed"]
    alone = await store.with_env(caches=Fails(CacheFlushFailed("gone"))).service.apply(
        uuid7(), apply_request(FlushCache(tags=["x"]))
    )
    assert [error.code for error in alone.operations[0].errors] == ["flush_failed"]


@pytest.mark.req("S-59")
async def test_a_write_whose_own_tags_cannot_be_flushed_is_undone(store: TestStore) -> None:
    hooked = store.with_env(caches=Fails(CacheFlushFailed("gone")), hooks=lambda: (CacheFlushHook(),))
    result = await hooked.service.apply(uuid7(), apply_request(update("tt_content", 9, header="in")))
    assert (result.outcome, result.reason) == (CallOutcome.ROLLED_BACK, RollbackReason.COMMIT_REFUSED)
    assert await store.value(HEADER, 9) == "Hours"


async def test_one_cache_that_fails_does_not_keep_the_next_from_being_flushed() -> None:
    seen: list[str] = []

    class Works:
        async def flush_tags(self, gateway: RecordGateway, tags: Sequence[str]) -> None: ...

        async def flush_group(self, group: str) -> None:
            seen.append(group)

    caches: list[CacheFlusher] = [Fails(OSError("gone")), Works()]
    assert await flush_groups(InstalledCaches(caches), ["pages", "pages", "all"]) == ["flush_failed"]
    assert seen == ["pages", "all"]


@pytest.mark.req("S-69")
@pytest.mark.parametrize(
    ("value", "groups", "tags"),
    [
        ("", [], []),
        ("all", ["all"], []),
        (" Pages , 12,cacheTag: news ", ["pages"], ["pageId_12", "news"]),
        ("012,-3,+4,cacheTag:,nonsense", [], ["pageId_12"]),
    ],
)
def test_a_clear_cache_command_is_read(value: str, groups: list[str], tags: list[str]) -> None:
    assert read_command(value) == (groups, tags)
