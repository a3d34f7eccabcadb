"""Settings, ids, clocks and CloudEvents."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_settings import SettingsConfigDict
from service_kit.bus import Message
from service_kit.clock import isoformat
from service_kit.cloudevents import CloudEvent, MalformedEventError, from_message, to_message
from service_kit.ids import uuid7
from service_kit.outages import is_database_outage
from service_kit.settings import ServiceSettings, SettingsError, load_settings

GOOD = "postgresql://user:pa55@localhost/x"


class KitSettings(ServiceSettings):
    model_config = SettingsConfigDict(env_prefix="KIT_")


def test_wrong_settings_are_named_one_by_one_without_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIT_PORT", "hunter2")
    monkeypatch.setenv("KIT_OWNER_DATABASE_URL", "mysql://hunter2")
    monkeypatch.setenv("KIT_LOG_LEVEL", "loud")
    with pytest.raises(SettingsError) as error:
        load_settings(KitSettings)
    assert sorted(line.partition(":")[0] for line in error.value.problems) == [
        "KIT_DATABASE_URL",
        "KIT_LOG_LEVEL",
        "KIT_OWNER_DATABASE_URL",
        "KIT_PORT",
    ]
    assert "KIT_DATABASE_URL: is not set" in error.value.problems
    assert "hunter2" not in str(error.value)


def test_wrong_settings_stop_the_start_with_readable_lines() -> None:
    code = "from service_kit.settings import *; load_settings_or_exit(ServiceSettings)"
    ended = subprocess.run([sys.executable, "-c", code], env={}, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", "DATABASE_URL: is not set\n")


def test_secrets_come_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "kit_database_url").write_text(GOOD)
    key = tmp_path / "key"
    key.write_text("pem\n")
    monkeypatch.setenv("KIT_SECRETS_DIR", str(tmp_path))
    monkeypatch.setenv("KIT_SIGNING_KEY_FILE", str(key))
    settings = load_settings(KitSettings)
    assert settings.database_url.get_secret_value() == GOOD
    assert settings.signing_key_file == key
    assert "pa55" not in repr(settings)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(f"{GOOD}2\n")
    monkeypatch.setenv("KIT_DATABASE_URL_FILE", str(elsewhere))
    assert load_settings(KitSettings).database_url.get_secret_value() == f"{GOOD}2"
    monkeypatch.setenv("KIT_DATABASE_URL", f"{GOOD}3")
    assert load_settings(KitSettings).database_url.get_secret_value() == f"{GOOD}3"


@pytest.mark.parametrize("variable", ["KIT_SECRETS_DIR", "KIT_DATABASE_URL_FILE"])
def test_a_file_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "nothing"))
    with pytest.raises(SettingsError, match=variable):
        load_settings(KitSettings)


def test_ids_are_ordered_by_time_and_unique() -> None:
    ids = [uuid7() for _ in range(2000)]
    assert len(set(ids)) == 2000
    assert sorted(ids) == ids
    assert ids[0].version == 7


def test_times_on_the_wire_are_utc() -> None:
    moment = datetime(2026, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=1)))
    assert isoformat(moment) == "2026-01-01T00:00:00Z"
    with pytest.raises(ValueError, match="time zone"):
        isoformat(datetime(2026, 1, 1))


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
events = st.builds(
    CloudEvent,
    id=st.builds(uuid7),
    source=words,
    type=words,
    data=st.binary(min_size=1),
    time=st.datetimes(timezones=st.just(UTC)),
    subject=st.none() | words,
    key=st.none() | words,
    stream=st.none() | words,
    sequence=st.none() | st.integers(1, 2**63 - 1),
    dataschema=st.none() | words,
    extensions=st.dictionaries(st.from_regex(r"x[a-z0-9]{0,10}", fullmatch=True), words, max_size=3),
)


@pytest.mark.req("T-70")
@given(events)
def test_an_event_survives_the_way_through_a_message(event: CloudEvent) -> None:
    message = to_message(event, "topic")
    assert from_message(message) == event
    assert message.key == event.key
    assert dict(message.headers).get("ce_sequence") == (None if event.sequence is None else str(event.sequence))


@pytest.mark.parametrize("name", ["id", "A", "a-b", "", "ü", "sequence"])
def test_extension_names_are_plain(name: str) -> None:
    event = CloudEvent(uuid7(), "/s", "t", b"{}", datetime.now(UTC), extensions={name: "x"})
    with pytest.raises(ValueError, match="extension"):
        to_message(event, "t")


@pytest.mark.parametrize(
    ("name", "value"),
    [("ce_id", "x"), ("ce_id", None), ("ce_type", None), ("ce_time", "noon"), ("ce_time", "2026-01-01T00:00:00"),
     ("ce_time", None), ("ce_sequence", "x"), ("ce_specversion", "2.0"), ("ce_source", None)],
)  # fmt: skip
def test_what_is_no_event_is_said(name: str, value: str | None) -> None:
    good = to_message(CloudEvent(uuid7(), "/s", "t", b"{}", datetime.now(UTC), sequence=1), "topic")
    headers = {**dict(good.headers), name: value}
    kept = tuple((key, text) for key, text in headers.items() if text is not None)
    with pytest.raises(MalformedEventError):
        from_message(Message("topic", None, b"{}", kept))
    with pytest.raises(MalformedEventError):
        from_message(Message("topic", None, b"", good.headers))


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (asyncpg.ConnectionDoesNotExistError("gone"), True),
        (asyncpg.AdminShutdownError("ended"), True),
        (asyncpg.CannotConnectNowError("starting"), True),
        (asyncpg.InterfaceError("connection is closed"), True),
        (ConnectionRefusedError(), True),
        (asyncpg.InterfaceError("another operation is in progress"), False),
        (asyncpg.UniqueViolationError("twice"), False),
        (FileNotFoundError(), False),
        (ValueError(), False),
    ],
)
def test_an_outage_of_the_database_is_told_from_a_fault(error: Exception, away: bool) -> None:
    assert is_database_outage(error) is away
