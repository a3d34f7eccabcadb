from __future__ import annotations

import os
from pathlib import Path

import pytest
from content_store.settings import StoreSettings
from service_kit.settings import SettingsError, load_settings


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("CONTENT_STORE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CONTENT_STORE_DATABASE_URL", "postgresql://u:p@h/d")


@pytest.mark.req("S-55", "S-64", "C-07")
def test_the_limits_are_settings_with_their_defaults() -> None:
    found = load_settings(StoreSettings)
    assert (found.judged_rows_limit, found.history_rows_limit, found.change_list_limit) == (5000, 5000, 50)
    assert (found.open_call_idle_limit, found.open_call_hard_limit) == (10.0, 60.0)
    assert (found.call_lock_timeout, found.rehearsal_lock_timeout) == (2.0, 1.0)


def test_folders_are_separated_like_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTENT_STORE_SCHEMA_FOLDERS", os.pathsep.join(("/a", "/b")))
    assert load_settings(StoreSettings).schema_folders == [Path("/a"), Path("/b")]


def test_a_wrong_limit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTENT_STORE_JUDGED_ROWS_LIMIT", "0")
    with pytest.raises(SettingsError, match="CONTENT_STORE_JUDGED_ROWS_LIMIT"):
        load_settings(StoreSettings)
