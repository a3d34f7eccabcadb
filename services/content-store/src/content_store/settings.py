"""Settings of the content-store: environment variables that begin with ``CONTENT_STORE_``. Every limit is one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict
from service_kit.settings import ServiceSettings

Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Folders = Annotated[list[Path], NoDecode]


class DatabaseSettings(ServiceSettings):
    """What ``migrate`` needs besides the addresses.

    Attributes:
        schema_folders: folders with a site's own table files, separated like the entries of ``PATH``.
        site_folders: folders with site files.
        service_role: role the service logs in as; ``migrate`` grants to it.
        migration_lock_timeout: seconds a migration waits for a table.
    """

    model_config = SettingsConfigDict(env_prefix="CONTENT_STORE_")

    port: int = Field(default=8101, ge=0, le=65535)
    schema_folders: Folders = []
    site_folders: Folders = []
    service_role: str = "content_store_service"
    migration_lock_timeout: Seconds = 2.0

    @field_validator("schema_folders", "site_folders", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return [part for part in value.split(os.pathsep) if part] if isinstance(value, str) else value


class StoreSettings(DatabaseSettings):
    """All settings of the service but those of logins (``auth.settings``).

    Attributes:
        apply_pool_size: connections of one-request calls and of people's writes.
        open_call_limit: interactive calls held at once; over it a new one is refused.
        read_pool_size: connections of reading requests.
        call_lock_timeout: seconds a call waits for a row (CALLS 1).
        call_statement_timeout: seconds after which a statement of a call is cancelled.
        call_retries: how often an ``apply`` is repeated after a deadlock or serialization failure.
        open_call_idle_limit: seconds between two requests of an interactive call (S-64).
        open_call_hard_limit: seconds an interactive call lives at most (S-64).
        open_call_placing_limit: seconds it lives after its first placing operation.
        rehearsal_lock_timeout: seconds a rehearsal waits for a row.
        judged_rows_limit: rows from which a call is not judgeable (S-55).
        history_rows_limit: history rows from which a call is not judgeable (S-55).
        change_list_limit: entries of a change list (C-07).
        call_token_key: secret of the tokens of interactive calls; a random one per process when not set.
        visibility_limit: records of one visibility request.
        page_limit: entries of one page of a list.
        capture_sweep_interval: seconds between two looks for rows nobody took.
        capture_sweep_age: seconds such a row is left alone.
        capture_sweep_batch: rows taken at once.
    """

    apply_pool_size: Count = 10
    open_call_limit: Count = 8
    read_pool_size: Count = 10
    call_lock_timeout: Seconds = 2.0
    call_statement_timeout: Seconds = 30.0
    call_retries: int = Field(default=2, ge=0, le=10)
    open_call_idle_limit: Seconds = 10.0
    open_call_hard_limit: Seconds = 60.0
    open_call_placing_limit: Seconds = 10.0
    rehearsal_lock_timeout: Seconds = 1.0
    judged_rows_limit: Count = 5000
    history_rows_limit: Count = 5000
    change_list_limit: Count = 50
    call_token_key: SecretStr | None = None

    visibility_limit: Count = 500
    page_limit: Count = 200

    capture_sweep_interval: Seconds = 5.0
    capture_sweep_age: Seconds = 10.0
    capture_sweep_batch: Count = 1000
