"""``content-store refindex``: run as the service's role against a migrated database (SEMANTICS 18)."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from content_store.cli import app
from content_store.schema.loader import load_schema
from content_store.schema.provision import DatabaseUrls
from remit_harness.databases import Databases
from store_support.database import prepare_test_database
from typer.testing import CliRunner, Result

_ROWS = """
INSERT INTO pages (uid, pid, title) VALUES (1, 0, 'Town');
INSERT INTO sys_category (uid, pid, title, parent) VALUES (5, 1, 'a', 0), (6, 1, 'b', 5);
INSERT INTO sys_refindex (hash, tablename, recuid, field, ref_table, ref_uid)
  VALUES (repeat('0', 32), 'pages', 9, 'media', 'sys_file', 3);
"""


@pytest.fixture
async def migrated(databases: Databases, postgres: str) -> DatabaseUrls:
    urls = await prepare_test_database(await databases.create("dh_refindex"), load_schema([]), server_url=postgres)
    owner = await asyncpg.connect(urls.owner)
    await owner.execute(_ROWS)
    await owner.close()
    return urls


async def run(*arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, app, ["refindex", *arguments])


async def test_drift_is_reported_and_corrected(migrated: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTENT_STORE_DATABASE_URL", migrated.service)
    found = await run("check")
    assert found.exit_code == 1, found.output
    assert "missing: sys_category:6.parent -> sys_category:5" in found.stdout
    assert "surplus: pages:9.media -> sys_file:3" in found.stdout
    assert "1 missing, 1 surplus" in found.stdout
    assert (await run("check")).exit_code == 1
    repaired = await run("rebuild")
    assert (repaired.exit_code, "was corrected" in repaired.stdout) == (0, True)
    clean = await run("check")
    assert (clean.exit_code, clean.stdout) == (0, "The reference index is clean.\n")


async def test_what_cannot_be_looked_at_is_not_called_clean(
    migrated: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTENT_STORE_DATABASE_URL", "postgresql://nobody:x@127.0.0.1:1/none")
    result = await run("check")
    assert result.exit_code == 2
    assert "cannot be used" in result.stderr
