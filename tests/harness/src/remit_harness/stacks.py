"""The three services as processes on fresh databases, for tests: the demo's stack without its supervision."""

from __future__ import annotations

import asyncio
import secrets as random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg
from remit_local.processes import Program
from remit_local.provision import DatabaseNames, provision
from remit_local.services import GATEWAY, RUNTIME, STORE, Ports, StackPlan, programs
from remit_local.stack import Stack, create_administrator, load_demo, migrate
from remit_local.state import random_secrets
from remit_local.supervisor import Supervisor

from remit_harness.run import TestRun
from remit_harness.servers import BrokerServer

TEMPLATE = "stack-template"
TEST_LEASE_SECONDS = 3


@dataclass(frozen=True)
class StackTemplate:
    """Migrated databases with the demo site, to be copied; nobody is connected to them.

    Attributes:
        names: of the databases and the roles the copies share.
        secrets: of the roles, people and services.
        demo: uids of the demo site's records.
    """

    names: DatabaseNames
    secrets: dict[str, str]
    demo: dict[str, Any]
    folder: Path


@dataclass
class TestStack:
    """A running stack of a test.

    Attributes:
        stack: the services, their programs and clients.
        demo: uids of the demo site: ``pages`` by title, ``elements`` by page title, ``journal``.
        database_urls: an administrator's, by service.
    """

    __test__ = False

    stack: Stack
    demo: dict[str, Any]
    database_urls: dict[str, str]

    def program(self, name: str) -> Program:
        """One program; ``agent-runtime-worker`` and ``chat-gateway-consumer`` beside the three services."""
        return self.stack.program(name)

    def page(self, title: str) -> int:
        """Uid of a page."""
        return int(self.demo["pages"][title])

    def elements(self, title: str) -> list[int]:
        """Uids of a page's elements in the default language, in their order."""
        return [int(uid) for uid in self.demo["elements"][title]]

    def restart(self, name: str) -> None:
        """Start a program again after it was killed, and wait for it where it has an API."""
        self.program(name).start()
        if name in (STORE, RUNTIME, GATEWAY):
            self.stack.wait_ready(name)

    def repair(self) -> list[str]:
        """Start whatever a test left dead or paused; the names of what was dead."""
        dead = []
        for program in self.stack.supervisor.programs:
            program.resume()
            if not program.running:
                dead.append(program.name)
        for name in dead:
            self.restart(name)
        return dead

    def rows(self, service: str, query: str, *arguments: Any) -> list[dict[str, Any]]:
        """Rows straight from a service's database, past its API."""
        return asyncio.run(_rows(self.database_urls[service], query, arguments))


async def _rows(url: str, query: str, arguments: Iterable[Any]) -> list[dict[str, Any]]:
    connection = await asyncpg.connect(url)
    try:
        return [dict(row) for row in await connection.fetch(query, *arguments)]
    finally:
        await connection.close()


def stack_template(run: TestRun, admin_url: str, broker: BrokerServer) -> StackTemplate:
    """The run's template, built by whoever asks first."""
    with run.locked(TEMPLATE):
        noted = run.known(TEMPLATE)
        if noted is None:
            noted = _build(run, admin_url, broker)
            run.note(TEMPLATE, noted)
    names = DatabaseNames.with_prefix(noted["prefix"])
    return StackTemplate(names, noted["secrets"], noted["demo"], run.folder / TEMPLATE)


def _build(run: TestRun, admin_url: str, broker: BrokerServer) -> dict[str, Any]:
    prefix = f"remit_t{run.owner}"
    names = DatabaseNames.with_prefix(prefix)
    secrets = random_secrets()
    asyncio.run(drop_databases(admin_url, names.databases))
    plan = StackPlan(
        folder=run.folder / TEMPLATE,
        databases=asyncio.run(provision(admin_url, names, secrets)),
        names=names,
        broker_url=broker.url,
        transactional=broker.transactional,
        secrets=secrets,
        ports=Ports.choose(),
    )
    migrate(plan)
    create_administrator(plan, secrets["admin"])
    store = Stack(plan)
    store.supervisor = Supervisor([program for program in programs(plan) if program.name == STORE])
    store.supervisor.start(watch=False)
    try:
        store.wait_ready(STORE)
        demo = load_demo(plan)
    finally:
        store.stop()
    return {"prefix": prefix, "secrets": secrets, "demo": demo}


def start_stack(
    template: StackTemplate,
    admin_url: str,
    broker: BrokerServer,
    *,
    workers: int = 1,
    extra: dict[str, str] | None = None,
) -> TestStack:
    """A stack on copies of the template's databases, started and ready."""
    prefix = f"remit_s{random.token_hex(5)}"
    names = replace(template.names, **{part: f"{prefix}_{part}" for part in ("store", "runtime", "gateway")})
    addresses = asyncio.run(_copy(admin_url, template, names))
    plan = StackPlan(
        folder=template.folder.parent / prefix,
        databases=addresses,
        names=names,
        broker_url=broker.url,
        transactional=broker.transactional,
        secrets=template.secrets,
        ports=Ports.choose(),
        workers=workers,
        lease=TEST_LEASE_SECONDS,
        # Stacks of one run share a broker: each has topics read by a group of its own.
        extra={"CHAT_GATEWAY_CONSUMER_GROUP": prefix, "CHAT_GATEWAY_REFILL_INTERVAL": "2", **(extra or {})},
    )
    _share_keys(template.folder, plan.folder)
    stack = Stack(plan)
    made = TestStack(stack, template.demo, _admin_urls(admin_url, names))
    try:
        stack.start(watch=False)
    except BaseException:
        stop_stack(made, admin_url)
        raise
    return made


def stop_stack(stack: TestStack, admin_url: str) -> None:
    """End the programs and drop the databases."""
    stack.stack.stop()
    asyncio.run(drop_databases(admin_url, stack.stack.plan.names.databases))


async def _copy(admin_url: str, template: StackTemplate, names: DatabaseNames) -> Any:
    admin = await asyncpg.connect(admin_url)
    try:
        for source, copy in zip(template.names.databases, names.databases, strict=True):
            await admin.execute(f'CREATE DATABASE "{copy}" TEMPLATE "{source}"')
    finally:
        await admin.close()
    return await provision(admin_url, names, template.secrets)


async def drop_databases(admin_url: str, databases: Iterable[str], roles: Iterable[str] = ()) -> None:
    """Drop databases, cutting their connections, then roles."""
    admin = await asyncpg.connect(admin_url)
    try:
        for database in databases:
            await admin.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
        for role in roles:
            await admin.execute(f'DROP ROLE IF EXISTS "{role}"')
    finally:
        await admin.close()


def forget_template(run: TestRun, admin_url: str) -> None:
    """In the controller, on a server that outlives the run: drop the template's databases and roles."""
    noted = run.known(TEMPLATE)
    if noted is not None:
        names = DatabaseNames.with_prefix(noted["prefix"])
        asyncio.run(drop_databases(admin_url, names.databases, names.roles))


def _share_keys(source: Path, target: Path) -> None:
    """Tokens name the key that signed them: the copies sign with the template's keys."""
    target.mkdir(parents=True, exist_ok=True)
    link = target / "keys"
    if not link.exists():
        link.symlink_to(source / "keys", target_is_directory=True)


def _admin_urls(admin_url: str, names: DatabaseNames) -> dict[str, str]:
    base = admin_url.rpartition("/")[0]
    return {
        STORE: f"{base}/{names.store}",
        RUNTIME: f"{base}/{names.runtime}",
        GATEWAY: f"{base}/{names.gateway}",
    }
