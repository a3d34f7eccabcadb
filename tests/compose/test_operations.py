"""The runbook and the containers' files name what there is: settings, secrets, services."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from agent_runtime.settings import RuntimeSettings
from chat_gateway.settings import GatewaySettings
from content_store.auth.settings import AuthSettings
from content_store.settings import StoreSettings
from pydantic_settings import BaseSettings
from service_kit.auth.keys import KeySet, SigningKey
from service_kit.settings import ServiceSettings, variable_name

ROOT = Path(__file__).resolve().parents[2]
RUNBOOK = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
COMPOSE = (ROOT / "deploy/compose.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("remit_compose_tool", ROOT / "tools/compose.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("settings", [StoreSettings, AuthSettings, RuntimeSettings, GatewaySettings])
def test_the_runbook_names_every_setting_and_no_other(settings: type[BaseSettings]) -> None:
    common = set(ServiceSettings.model_fields) - {"port"} if issubclass(settings, ServiceSettings) else set()
    own = {variable_name(settings, name) for name in settings.model_fields if name not in common}
    prefix = settings.model_config["env_prefix"]
    rows = set(re.findall(rf"^\| `({prefix}[A-Z_]+)` \|", RUNBOOK, re.MULTILINE))
    if settings is StoreSettings:
        rows = {name for name in rows if not name.startswith("CONTENT_STORE_AUTH_")}
    # The table of keys names secrets of the compose file as well, which are no settings.
    secrets = {f"{prefix}{name}" for name in ("SIGNING_KEY", "PASSWORD", "OWNER_PASSWORD", "SERVICE_PASSWORD")}
    assert rows - secrets == own


def test_the_runbook_names_what_all_services_share() -> None:
    rows = set(re.findall(r"^\| `<PREFIX>_([A-Z_]+)` \|", RUNBOOK, re.MULTILINE))
    assert rows == {name.upper() for name in ServiceSettings.model_fields}


def test_settings_of_the_compose_file_exist() -> None:
    known = {f"CONTENT_STORE_{name}" for name in ("ADMIN_DATABASE_URL", "OWNER_PASSWORD", "SERVICE_PASSWORD")}
    for settings in (StoreSettings, AuthSettings, RuntimeSettings, GatewaySettings):
        known |= {variable_name(settings, name) for name in settings.model_fields}
    used = set(re.findall(r"^ +((?:CONTENT_STORE|AGENT_RUNTIME|CHAT_GATEWAY)_[A-Z_]+):", COMPOSE, re.MULTILINE))
    assert used - known == {"AGENT_RUNTIME_PASSWORD", "CHAT_GATEWAY_PASSWORD"}, (
        "passwords PostgreSQL's first start takes"
    )


def test_secrets_are_random_private_kept_and_completed(tool: ModuleType, tmp_path: Path) -> None:
    stack = tool.Stack("remit-no-such-project", tmp_path)
    first = stack.prepare()
    text = stack.env.read_text()
    assert stack.env.stat().st_mode & 0o777 == 0o600
    assert tool.read_environment(text) == first
    assert stack.prepare() == first
    assert stack.env.read_text() == text
    other = tool.Stack("remit-no-such-project", tmp_path / "other").prepare()
    assert {name for name in first if first[name] == other[name]} == {"REMIT_ADMIN_NAME"}

    kept = [line for line in text.splitlines() if not line.startswith("CHAT_GATEWAY_SIGNING_KEY")]
    stack.env.write_text("\n".join([*kept, "# a remark", 'GATEWAY_PORT="9000"']))
    completed = stack.prepare()
    assert completed["GATEWAY_PORT"] == "9000"
    assert completed["CHAT_GATEWAY_SIGNING_KEY"] != first["CHAT_GATEWAY_SIGNING_KEY"]
    assert {name: value for name, value in completed.items() if name in first and "GATEWAY_SIGN" not in name} == {
        name: value for name, value in first.items() if "GATEWAY_SIGN" not in name
    }
    assert stack.env.stat().st_mode & 0o777 == 0o600
    published = KeySet.from_public_pem((stack.keys / "chat-gateway.pem").read_text())
    assert published.get(SigningKey.from_pem(completed["CHAT_GATEWAY_SIGNING_KEY"]).kid) is not None


def test_every_secret_of_the_compose_file_is_made(tool: ModuleType) -> None:
    asked = set(re.findall(r"\$\{([A-Z_]+)(?::\?[^}]*)?\}", COMPOSE))
    assert asked == set(tool.new_environment()) - {"REMIT_ADMIN_NAME"}


def test_a_cluster_id_is_never_taken_for_an_option_of_a_command(tool: ModuleType) -> None:
    # One in 64 random ones begins with a dash.
    assert not [made for made in (tool.cluster_id() for _ in range(1000)) if made.startswith("-") or len(made) != 22]
