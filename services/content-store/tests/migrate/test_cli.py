from __future__ import annotations

import json
from pathlib import Path

import pytest
from content_store.cli import app
from content_store.schema.provision import DatabaseUrls
from store_support.database import SERVICE
from typer.testing import CliRunner

EXAMPLE = Path(__file__).parents[1] / "schema" / "example" / "tables"


@pytest.fixture
def environment(urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("CONTENT_STORE_DATABASE_URL", urls.service)
    monkeypatch.setenv("CONTENT_STORE_OWNER_DATABASE_URL", urls.owner)
    monkeypatch.setenv("CONTENT_STORE_SERVICE_ROLE", SERVICE)
    return monkeypatch


def test_migrate_says_what_it_did_and_what_it_refused(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = CliRunner()
    environment.setenv("CONTENT_STORE_SCHEMA_FOLDERS", str(EXAMPLE))
    first = run.invoke(app, ["migrate"])
    assert first.exit_code == 0
    assert "tx_town_event" in first.stdout
    environment.setenv("CONTENT_STORE_SCHEMA_FOLDERS", "")
    refused = run.invoke(app, ["migrate"])
    assert refused.exit_code == 1
    assert "tx_town_event: the table and its rows would be dropped" in refused.stderr
    assert "pages.town_colour" in refused.stderr
    assert "Nothing was changed" in refused.stderr
    dropped = run.invoke(app, ["migrate", "--allow-destructive"])
    assert dropped.exit_code == 0
    assert "Dropped: " in dropped.stdout


def test_a_wrong_file_ends_with_one_line(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"table": "tx_a", "columns": {"t": {"config": {"type": "no"}}}}))
    environment.setenv("CONTENT_STORE_SCHEMA_FOLDERS", str(tmp_path))
    result = CliRunner().invoke(app, ["migrate"])
    assert result.exit_code == 1
    assert "columns.t" in result.stderr
    assert "Traceback" not in result.output


def test_a_missing_address_is_named(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("CONTENT_STORE_OWNER_DATABASE_URL")
    result = CliRunner().invoke(app, ["migrate"])
    assert result.exit_code == 1
    assert "CONTENT_STORE_OWNER_DATABASE_URL" in result.stderr


@pytest.mark.parametrize("address", ["postgresql://nobody:x@127.0.0.1:1/none", "wrong-password"])
def test_a_database_that_does_not_answer_is_told(
    environment: pytest.MonkeyPatch, urls: DatabaseUrls, address: str
) -> None:
    url = address if "://" in address else urls.owner.replace(":test-owner@", ":wrong@")
    environment.setenv("CONTENT_STORE_OWNER_DATABASE_URL", url)
    result = CliRunner().invoke(app, ["migrate"])
    assert result.exit_code == 1
    assert "the database cannot be used" in result.stderr
    assert "Traceback" not in result.output
    assert "wrong@" not in result.output


def test_provision_makes_what_is_missing(urls: DatabaseUrls, postgres: str) -> None:
    database = urls.owner.rpartition("/")[2]
    result = CliRunner().invoke(
        app,
        ["provision", "--admin-url", postgres, "--owner-password", "test-owner", "--service-password", "test-service"],
        env={
            "CONTENT_STORE_DATABASE_NAME": database,
            "CONTENT_STORE_OWNER_ROLE": "remit_test_owner",
            "CONTENT_STORE_SERVICE_ROLE": SERVICE,
        },
    )
    assert result.exit_code == 0, result.output


def test_the_service_does_not_start_as_the_owner(environment: pytest.MonkeyPatch, urls: DatabaseUrls) -> None:
    environment.setenv("CONTENT_STORE_DATABASE_URL", urls.owner)
    result = CliRunner().invoke(app, ["serve"])
    assert result.exit_code == 1
    assert result.stderr == (
        "the service must not run as the database role remit_test_owner: it owns the database or a table in it\n"
    )
