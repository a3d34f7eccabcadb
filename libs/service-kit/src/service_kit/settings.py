"""Settings of a service: environment variables with the service's prefix, and secrets from files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SecretsSettingsSource, SettingsConfigDict

DEFAULT_SECRETS_DIR = Path("/run/secrets")
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
ProducerMode = Literal["plain", "idempotent", "transactional"]


class SettingsError(Exception):
    """One or more settings are missing or wrong; ``problems`` holds one readable line per setting, without values."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class _FileVariables(PydanticBaseSettingsSource):
    """``<PREFIX><NAME>_FILE`` names a file whose content is the value, as container platforms hand over secrets."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The content of the file named by the variable, or ``None``."""
        variable = f"{variable_name(self.settings_cls, field_name)}_FILE"
        path = os.environ.get(variable)
        # A setting such as signing_key_file has a variable of the same form; it is read as itself.
        if not path or f"{field_name}_file" in self.settings_cls.model_fields:
            return None, field_name, False
        try:
            return Path(path).read_text(encoding="utf-8").strip(), field_name, False
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError([f"{variable}: the file cannot be read ({type(error).__name__})"]) from error

    def __call__(self) -> dict[str, Any]:
        """Every setting that is given by a file."""
        values = {name: self.get_field_value(field, name)[0] for name, field in self.settings_cls.model_fields.items()}
        return {name: value for name, value in values.items() if value is not None}


class ServiceSettings(BaseSettings):
    """What every service needs; a service subclasses it and sets ``env_prefix``, e.g. ``CONTENT_STORE_``.

    Values come, first found wins, from arguments, environment variables, ``…_FILE`` variables, and files in the folder
    ``<PREFIX>SECRETS_DIR`` (``/run/secrets`` when it exists) named like the variables. Database addresses are libpq
    URLs without a driver name.
    """

    model_config = SettingsConfigDict(extra="ignore", case_sensitive=False, hide_input_in_errors=True)

    database_url: SecretStr
    owner_database_url: SecretStr | None = None
    database_pool_size: int = Field(default=10, ge=1, le=500)
    database_connect_timeout: float = Field(default=10.0, gt=0, description="seconds")
    broker_url: str = "kafka://127.0.0.1:9092"
    broker_producer: ProducerMode = "idempotent"

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    public_url: str | None = None
    max_body_bytes: int = Field(default=8_388_608, ge=1024)
    log_level: LogLevel = "INFO"
    log_format: Literal["json", "console"] = "json"
    otel_endpoint: str | None = Field(default=None, description="base URL of an OTLP HTTP collector")

    signing_key: SecretStr | None = Field(default=None, description="PEM of the service's Ed25519 private key")
    signing_key_file: Path | None = None
    trusted_keys_dir: Path | None = Field(default=None, description="folder of <service>.pem public keys")
    token_issuer: str = "remit"  # noqa: S105 - a name
    token_audience: str = "remit"  # noqa: S105 - a name
    token_leeway: float = Field(default=5.0, ge=0, le=60, description="seconds of clock difference tolerated")
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_jwks_url: str | None = None
    oidc_jwks_file: Path | None = None
    oidc_user_claim: str = "sub"

    outbox_poll_interval: float = Field(default=1.0, gt=0, description="seconds")
    outbox_batch_size: int = Field(default=200, ge=1, le=5000)
    outbox_retention: float = Field(default=7 * 86_400.0, ge=0, description="seconds a published row is kept")
    idempotency_retention: float = Field(default=86_400.0, gt=0, description="seconds a stored answer is kept")

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @field_validator("database_url", "owner_database_url")
    @classmethod
    def _postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("must be a URL that starts with postgresql://")
        return value

    @field_validator("broker_url")
    @classmethod
    def _broker(cls, value: str) -> str:
        if not value.startswith(("kafka://", "memory://")):
            raise ValueError("must start with kafka:// or memory://")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, environment, ``…_FILE`` variables, then the secrets folder."""
        sources = (init_settings, env_settings, _FileVariables(settings_cls))
        named = os.environ.get(variable_name(settings_cls, "secrets_dir"))
        folder = Path(named) if named else DEFAULT_SECRETS_DIR
        if not folder.is_dir():
            if named:
                raise SettingsError([f"{variable_name(settings_cls, 'secrets_dir')}: is not a folder"])
            return sources
        return (*sources, SecretsSettingsSource(settings_cls, secrets_dir=folder))


SettingsT = TypeVar("SettingsT", bound=BaseSettings)


def variable_name(settings: type[BaseSettings], field: str) -> str:
    """The environment variable of a setting, e.g. ``CONTENT_STORE_DATABASE_URL``."""
    return f"{settings.model_config.get('env_prefix', '')}{field}".upper()


def load_settings(settings: type[SettingsT]) -> SettingsT:
    """Read the settings from the environment.

    Raises:
        SettingsError: with one line per missing or wrong setting; values are never part of it.
    """
    try:
        return settings()
    except ValidationError as error:
        lines = []
        for item in error.errors(include_url=False, include_input=False, include_context=False):
            name = variable_name(settings, str(item["loc"][0])) if item["loc"] else "settings"
            reason = "is not set" if item["type"] == "missing" else item["msg"].removeprefix("Value error, ")
            lines.append(f"{name}: {reason}")
        raise SettingsError(lines) from error


def load_settings_or_exit(settings: type[SettingsT]) -> SettingsT:
    """Read the settings; when they are wrong, write one line per setting to standard error and end with status 2."""
    try:
        return load_settings(settings)
    except SettingsError as error:
        sys.stderr.write("".join(f"{line}\n" for line in error.problems))
        raise SystemExit(2) from error
