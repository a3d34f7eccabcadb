"""Settings of the agent-runtime: environment variables ``AGENT_RUNTIME_…``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict
from service_kit.settings import ServiceSettings

SERVICE = "agent-runtime"
PACKAGE = "agent_runtime"


class RuntimeSettings(ServiceSettings):
    """What this service needs beside the common settings.

    Attributes:
        state_key: base64 of 32 bytes; several, separated by commas, while a key is being replaced (the first seals).
        content_store_jwks_url: keys of the access tokens; none = only services call.
        configurations_file: TOML or JSON; none = only the built-in demo configuration.
        privacy_level: the strictest of this and the configuration's counts (T-53).
        lease_seconds: of an executing segment; renewed at each step and by a heartbeat.
        requeue_limit: how often a run is taken up again after its worker went away or its provider failed (T-24).
        store_patience: seconds a worker keeps asking for the outcome of a call before it gives the run back.
    """

    model_config = SettingsConfigDict(
        env_prefix="AGENT_RUNTIME_", extra="ignore", case_sensitive=False, hide_input_in_errors=True
    )

    port: int = Field(default=8102, ge=0, le=65535)
    state_key: SecretStr
    content_store_url: str = "http://127.0.0.1:8101"
    content_store_jwks_url: str | None = None
    configurations_file: Path | None = None
    disabled_tools: list[str] = []
    privacy_level: Literal["metadata", "redacted", "full"] = "full"

    lease_seconds: float = Field(default=60.0, gt=0.2, le=3600)
    poll_interval: float = Field(default=1.0, gt=0, le=60, description="seconds between looks for queued runs")
    worker_concurrency: int = Field(default=4, ge=1, le=100, description="runs one worker process executes at a time")
    requeue_limit: int = Field(default=3, ge=0, le=20)
    backoff_base: float = Field(default=30.0, ge=0, description="seconds, doubled per attempt")
    backoff_limit: float = Field(default=600.0, ge=0, description="seconds")
    call_timeout: float = Field(default=60.0, gt=0, description="seconds for one call of the store")
    store_patience: float = Field(default=30.0, ge=0)
    read_timeout: float = Field(default=30.0, gt=0)

    run_retention_days: float = Field(default=30.0, ge=0, description="settled runs with their steps")
    waiting_retention_days: float = Field(
        default=90.0, ge=0, description="runs nobody decided; cancelled, then kept as any"
    )
    governance_retention_days: float = Field(default=365.0, ge=0)
    purge_interval: float = Field(
        default=3600.0, ge=0, description="seconds between purges by a worker; 0 leaves them to the command"
    )

    max_content_bytes: int = Field(default=50_000, ge=1000)
    max_artifact_bytes: int = Field(default=50_000, ge=1000)
    remote_calls_per_segment: int = Field(default=20, ge=0)
    max_steps_page: int = Field(default=500, ge=1, le=5000)
