"""The programs of a stack and the environment each of them gets (pure but for finding free ports)."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from remit_local.processes import Program, free_port
from remit_local.provision import DatabaseAddresses, DatabaseNames

DEMO_FOLDER = Path(__file__).resolve().parent / "demo"
DEMO_LEASE_SECONDS = 10
STORE, RUNTIME, GATEWAY = "content-store", "agent-runtime", "chat-gateway"
WORKER, CONSUMER = "agent-runtime-worker", "chat-gateway-consumer"


@dataclass(frozen=True)
class Ports:
    """Ports of the three APIs."""

    gateway: int
    store: int
    runtime: int

    @classmethod
    def choose(cls, gateway: int | None = None, store: int | None = None, runtime: int | None = None) -> Ports:
        """The given ports, free ones for the rest."""
        return cls(gateway or free_port(), store or free_port(), runtime or free_port())


@dataclass(frozen=True)
class StackPlan:
    """Everything the programs of one stack have to know.

    Attributes:
        folder: for logs and keys.
        databases: addresses.
        names: of databases and roles.
        broker_url: ``kafka://host:port``.
        transactional: the broker knows idempotent and transactional producers.
        secrets: ``call_token_key``, ``state_key``, and the passwords of people.
        workers: how many workers run beside the API.
        lease: seconds a worker holds a run without renewing.
        extra: variables a test adds, for every program.
        owner: process the programs belong to.
    """

    folder: Path
    databases: DatabaseAddresses
    names: DatabaseNames
    broker_url: str
    transactional: bool
    secrets: dict[str, str]
    ports: Ports
    workers: int = 1
    lease: int = DEMO_LEASE_SECONDS
    extra: dict[str, str] = field(default_factory=dict)
    owner: int | None = None

    @property
    def keys(self) -> Path:
        """Folder of the services' keys."""
        return self.folder / "keys"

    def url(self, service: str) -> str:
        """Base address of an API."""
        port = {STORE: self.ports.store, RUNTIME: self.ports.runtime, GATEWAY: self.ports.gateway}[service]
        return f"http://127.0.0.1:{port}"


def command(program: str, *arguments: str) -> list[str]:
    """A console script of the environment this program runs in."""
    return [str(Path(sys.executable).parent / program), *arguments]


def programs(plan: StackPlan) -> list[Program]:
    """The programs in the order they start."""
    made = [
        _program(plan, STORE, command(STORE, "serve"), store_environment(plan)),
        _program(plan, RUNTIME, command(RUNTIME, "serve"), runtime_environment(plan)),
    ]
    for number in range(1, plan.workers + 1):
        name = WORKER if plan.workers == 1 else f"{WORKER}-{number}"
        made.append(_program(plan, name, command(RUNTIME, "worker"), runtime_environment(plan)))
    made.append(_program(plan, GATEWAY, command(GATEWAY, "serve"), gateway_environment(plan)))
    made.append(_program(plan, CONSUMER, command(GATEWAY, "consume"), gateway_environment(plan)))
    return made


def migrations(plan: StackPlan) -> list[Program]:
    """Programs that bring the three databases up to date and end."""
    return [
        _program(plan, f"{STORE}-migrate", command(STORE, "migrate"), store_environment(plan, owner=True)),
        _program(plan, f"{RUNTIME}-migrate", command(RUNTIME, "migrate"), runtime_environment(plan)),
        _program(plan, f"{GATEWAY}-migrate", command(GATEWAY, "migrate"), gateway_environment(plan)),
    ]


def store_environment(plan: StackPlan, *, owner: bool = False) -> dict[str, str]:
    """Variables of the content-store; only ``migrate`` and ``user`` see the owner's address."""
    values = {
        **_common(plan, STORE, plan.ports.store, plan.databases.store),
        "SCHEMA_FOLDERS": str(DEMO_FOLDER / "schema"),
        "SITE_FOLDERS": str(DEMO_FOLDER / "sites"),
        "SERVICE_ROLE": plan.names.store_service,
        "CALL_TOKEN_KEY": plan.secrets["call_token_key"],
    }
    if owner:
        values["OWNER_DATABASE_URL"] = plan.databases.store_owner
    environment = _environment(plan, "CONTENT_STORE_", values)
    # The demo's own hook is announced by a folder that only this process has on its path.
    paths = [str(DEMO_FOLDER / "plugin"), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | {"PYTHONPATH": os.pathsep.join(paths)}


def runtime_environment(plan: StackPlan) -> dict[str, str]:
    """Variables of the agent-runtime, API and worker alike."""
    values = {
        **_common(plan, RUNTIME, plan.ports.runtime, plan.databases.runtime),
        "CONTENT_STORE_URL": plan.url(STORE),
        "CONTENT_STORE_JWKS_URL": f"{plan.url(STORE)}/v1/auth/jwks",
        "LEASE_SECONDS": str(plan.lease),
        "STATE_KEY": plan.secrets["state_key"],
    }
    return _environment(plan, "AGENT_RUNTIME_", values)


def gateway_environment(plan: StackPlan) -> dict[str, str]:
    """Variables of the chat-gateway, API and consumer alike."""
    values = {
        **_common(plan, GATEWAY, plan.ports.gateway, plan.databases.gateway),
        "CONTENT_STORE_URL": plan.url(STORE),
        "AGENT_RUNTIME_URL": plan.url(RUNTIME),
    }
    return _environment(plan, "CHAT_GATEWAY_", values)


def _common(plan: StackPlan, service: str, port: int, database: str) -> dict[str, str]:
    return {
        "DATABASE_URL": database,
        "BROKER_URL": plan.broker_url,
        "BROKER_PRODUCER": "idempotent" if plan.transactional else "plain",
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "PUBLIC_URL": plan.url(service),
        "SIGNING_KEY_FILE": str(plan.keys / f"{service}.pem"),
        "TRUSTED_KEYS_DIR": str(plan.keys / "trusted"),
        "LOG_LEVEL": os.environ.get("REMIT_LOG_LEVEL", "INFO"),
        "OUTBOX_POLL_INTERVAL": "0.2",
    }


def _environment(plan: StackPlan, prefix: str, values: dict[str, str]) -> dict[str, str]:
    passed = ("PATH", "HOME", "LANG", "TZ", "SSL_CERT_FILE", "TMPDIR", "OPENAI_API_KEY", "ANTHROPIC_API_KEY")
    base = {name: os.environ[name] for name in passed if name in os.environ}
    # A deployment may hand more settings to a service; those of the stack win.
    base |= {name: value for name, value in os.environ.items() if name.startswith(prefix)}
    base |= {f"{prefix}{name}": value for name, value in values.items()}
    return base | {"PYTHONUNBUFFERED": "1", **plan.extra}


def _program(plan: StackPlan, name: str, arguments: list[str], environment: dict[str, str]) -> Program:
    return Program(name, arguments, environment, plan.folder / "logs" / f"{name}.log", plan.owner)
