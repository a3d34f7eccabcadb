"""``remit demo`` from the first start to the last: servers, databases, services, site, story."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import asyncpg

from remit_local import postgres
from remit_local.brokers.base import Broker
from remit_local.brokers.kafka import KafkaBroker
from remit_local.brokers.tansu import TansuBroker
from remit_local.migrated import code_fingerprint
from remit_local.processes import free_port
from remit_local.provision import DatabaseNames, provision
from remit_local.services import DEMO_FOLDER, GATEWAY, RUNTIME, STORE, Ports, StackPlan
from remit_local.stack import Stack, await_administrator, begin_administrator, load_demo, migrate
from remit_local.state import State
from remit_local.supervisor import Supervisor

DEMO_BACKOFF_SECONDS = "10"
NAMES = DatabaseNames.with_prefix("remit")
BROKERS: dict[str, type[Broker]] = {"tansu": TansuBroker, "kafka": KafkaBroker}
Tell = Callable[[str], None]


@dataclass(frozen=True)
class DemoOptions:
    """What a person may set; ports that are none are chosen.

    Attributes:
        broker: ``tansu`` (embedded, keeps nothing) or ``kafka``.
    """

    broker: str = "tansu"
    gateway_port: int | None = None
    store_port: int | None = None
    runtime_port: int | None = None
    postgres_port: int | None = None
    broker_port: int | None = None


@dataclass
class RunningDemo:
    """A demo that runs."""

    state: State
    stack: Stack
    broker: Broker


@contextlib.contextmanager
def running_demo(state: State, options: DemoOptions, tell: Tell) -> Iterator[RunningDemo]:
    """Everything started in order, and stopped in the reverse one whatever happens."""
    with contextlib.ExitStack() as ends:
        begin = time.monotonic()
        postgres.stop_postgres(state.postgres)  # left by a crash; the lock says nobody uses it
        broker = BROKERS[options.broker](state.broker / options.broker, port=options.broker_port, owner=os.getpid())
        ends.callback(broker.stop)
        broker.launch()
        server = postgres.start_postgres(state.postgres, port=options.postgres_port, owner=os.getpid())
        ends.callback(postgres.stop_postgres, state.postgres)
        broker.await_ready()
        servers = Supervisor([server.program, broker.program], tell)
        ends.callback(servers.stop)
        servers.start()
        tell(f"PostgreSQL on port {server.port}, {options.broker} on port {broker.port}")
        if not state.demo:
            asyncio.run(_drop_unfinished(server.url()))
        databases = asyncio.run(provision(server.url(), NAMES, state.secrets))
        plan = StackPlan(
            folder=state.folder,
            databases=databases,
            names=NAMES,
            broker_url=broker.url,
            transactional=broker.transactional,
            secrets=state.secrets,
            ports=_ports(options),
            extra=_quick(),
        )
        fingerprint = code_fingerprint([DEMO_FOLDER / "schema"])
        # A service refuses a database it does not fit by itself; asking again would only cost seconds.
        if not state.demo or state.migrated != fingerprint:
            migrate(plan)
            state.migrated = fingerprint
            state.save()
        tell("databases are migrated")
        administrator = None if state.demo else begin_administrator(plan, state.secrets["admin"])
        stack = Stack(plan, tell)
        ends.callback(stack.stop)
        stack.start()
        if administrator is not None:
            await_administrator(administrator)
        tell(f"three services with a worker and a consumer are ready after {time.monotonic() - begin:.1f} s")
        if not state.demo:
            state.demo = load_demo(plan)
            state.save()
            tell("the demo site is loaded: Alderbrook, 40 pages, 150 elements, two languages")
        _note(state, stack, servers, broker, server.port)
        ends.callback(state.running_file.unlink, missing_ok=True)
        yield RunningDemo(state, stack, broker)


def _quick() -> dict[str, str]:
    """Somebody watches the demo: a service that died is back in seconds, and so is the run that missed it."""
    name = "AGENT_RUNTIME_BACKOFF_BASE"
    return {name: os.environ.get(name, DEMO_BACKOFF_SECONDS)}


def _ports(options: DemoOptions) -> Ports:
    return Ports(
        options.gateway_port or free_port(), options.store_port or free_port(), options.runtime_port or free_port()
    )


def _note(state: State, stack: Stack, servers: Supervisor, broker: Broker, postgres_port: int) -> None:
    state.note_running(
        {
            "services": {name: stack.plan.url(name) for name in (GATEWAY, STORE, RUNTIME)},
            "processes": {program.name: program.pid for program in (*servers.programs, *stack.supervisor.programs)},
            "broker": {"kind": broker.name, "address": broker.address},
            "postgres": {"port": postgres_port},
        }
    )


async def _drop_unfinished(admin_url: str) -> None:
    """A first start that was interrupted leaves a part of the site: begin with empty databases."""
    connection = await asyncpg.connect(admin_url)
    try:
        for database in NAMES.databases:
            await connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
    finally:
        await connection.close()
