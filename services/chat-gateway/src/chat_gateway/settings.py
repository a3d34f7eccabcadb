"""Settings of the gateway: environment variables that begin with ``CHAT_GATEWAY_``."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import SettingsConfigDict
from service_kit.settings import ServiceSettings

SERVICE = "chat-gateway"
PACKAGE = "chat_gateway"


class GatewaySettings(ServiceSettings):
    """What can be set; each value has the default of its requirement."""

    model_config = SettingsConfigDict(env_prefix="CHAT_GATEWAY_")

    port: int = Field(default=8100, ge=0, le=65535)
    content_store_url: str = "http://127.0.0.1:8101"
    agent_runtime_url: str = "http://127.0.0.1:8102"
    remote_timeout: float = Field(default=15.0, gt=0, description="seconds for one call to another service")
    decision_timeout: float = Field(default=15.0, gt=0, description="seconds until a decision counts as unanswered")
    language_cache: float = Field(default=60.0, ge=0, description="seconds titles of languages are remembered")
    session_cache: float = Field(default=5.0, ge=0, le=5, description="seconds a login session is believed to stand")

    question_tools: list[str] = Field(default=["ask_choice"], description="tools that ask the editor (R-045)")
    max_messages: int = Field(default=2_000, ge=2, description="messages a conversation may hold")
    start_give_up: float = Field(default=120.0, gt=0, description="seconds a run's start is tried")
    start_pause: float = Field(default=2.0, gt=0, description="seconds between attempts of a start")

    consumer_group: str = "chat-gateway"
    consumer_port: int | None = Field(
        default=None, ge=0, le=65535, description="port of the consumer's health and metrics, none = off"
    )
    consumer_attempts: int = Field(default=5, ge=1, description="attempts before a message goes to the dead letters")
    refill_interval: float = Field(default=10.0, gt=0, description="seconds between checks of unfinished runs")
    inbox_retention: float = Field(default=7 * 86_400.0, gt=0, description="seconds an event id is remembered")

    change_rows: int = Field(default=100, ge=1, le=500, description="rows of a change list (R-081)")
    visibility_batch: int = Field(default=500, ge=1, le=500, description="records asked for at once")

    stream_poll: float = Field(default=5.0, gt=0, description="seconds between looks at the log without a wake-up")
    stream_heartbeat: float = Field(default=15.0, gt=0, description="seconds between comments on a quiet stream")
    stream_lifetime: float = Field(default=540.0, gt=0, description="seconds a stream is kept open at most")
    stream_retention: float = Field(default=86_400.0, gt=0, description="seconds an event can be resumed from")
    stream_connections: int = Field(default=500, ge=1, description="open streams per process")
