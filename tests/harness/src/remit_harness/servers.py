"""PostgreSQL and a broker for tests: from the environment, from Docker, or started here (one of each per run)."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from remit_local.brokers.base import Broker
from remit_local.brokers.kafka import KafkaBroker, kafka_possible
from remit_local.brokers.tansu import TansuBroker
from remit_local.postgres import remove_data, start_postgres, stop_postgres
from remit_local.processes import await_ended

from remit_harness import containers
from remit_harness.run import TestRun

POSTGRES_VARIABLE = "REMIT_TEST_POSTGRES"
BROKER_VARIABLE = "REMIT_TEST_BROKER"
BROKER_KIND_VARIABLE = "REMIT_TEST_BROKER_KIND"
BACKEND_VARIABLE = "TEST_BACKEND"
STOP_SECONDS = 20.0


@dataclass(frozen=True)
class BrokerServer:
    """A broker that tests may use; topics of other tests lie on it too, so names must be one's own.

    Attributes:
        address: ``host:port``.
        kind: ``kafka`` or ``tansu``.
        origin: ``environment``, ``docker`` or ``local``.
    """

    address: str
    kind: str
    origin: str

    @property
    def url(self) -> str:
        """As the services take it, ``kafka://host:port``."""
        return f"kafka://{self.address}"

    @property
    def transactional(self) -> bool:
        """Producers may be idempotent and transactional."""
        return self.kind == "kafka"


@dataclass(frozen=True)
class PostgresAddress:
    """A PostgreSQL that tests may use; ``url`` is an administrator's, without a driver name."""

    url: str
    origin: str


def postgres_server(run: TestRun) -> PostgresAddress:
    """The run's PostgreSQL, started by the first who asks."""
    if given := os.environ.get(POSTGRES_VARIABLE):
        return PostgresAddress(given, "environment")
    with run.locked("postgres"):
        noted = run.known("postgres")
        if noted is None:
            noted = _start_postgres(run)
            run.note("postgres", noted)
    return PostgresAddress(noted["url"], noted["origin"])


def broker_server(run: TestRun) -> BrokerServer:
    """The run's broker, started by the first who asks."""
    if given := os.environ.get(BROKER_VARIABLE):
        kind = os.environ.get(BROKER_KIND_VARIABLE, "kafka")
        return BrokerServer(given.removeprefix("kafka://"), kind, "environment")
    with run.locked("broker"):
        noted = run.known("broker")
        if noted is None:
            noted = _start_broker(run)
            run.note("broker", noted)
    return BrokerServer(noted["address"], noted["kind"], noted["origin"])


def _start_postgres(run: TestRun) -> dict[str, str]:
    if containers.wanted():
        container, url = containers.start_postgres()
        return {"url": url, "origin": "docker", "container": container}
    server = start_postgres(run.folder / "pg", durable=False, owner=run.owner)
    return {"url": server.url(), "origin": "local"}


def _start_broker(run: TestRun) -> dict[str, Any]:
    if containers.wanted():
        container, address = containers.start_kafka()
        return {"address": address, "kind": "kafka", "origin": "docker", "container": container}
    broker = local_broker(run)
    broker.start()
    return {"address": broker.address, "kind": broker.name, "origin": "local", "pid": broker.pid}


def local_broker(run: TestRun, name: str = "broker") -> Broker:
    """A broker of this run, not started: Apache Kafka where it can run, else the embedded one.

    ``REMIT_TEST_BROKER_KIND=tansu`` or ``=kafka`` decides instead.
    """
    wanted = os.environ.get(BROKER_KIND_VARIABLE)
    folder = run.folder / name
    if wanted == "tansu" or (wanted is None and kafka_possible() is not None):
        return TansuBroker(folder, owner=run.owner)
    return KafkaBroker(folder, owner=run.owner)


def stop_servers(run: TestRun) -> None:
    """In the controller: end what the run started."""
    broker = run.known("broker") or {}
    postgres = run.known("postgres") or {}
    for noted in (broker, postgres):
        if "container" in noted:
            containers.remove(str(noted["container"]))
    if "pid" in broker:
        _end(int(broker["pid"]))
    if postgres.get("origin") == "local":
        stop_postgres(run.folder / "pg")
        remove_data(run.folder / "pg")
    await_ended()


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)


def docker_answers() -> bool:
    """A Docker engine is reachable."""
    program = shutil.which("docker")
    if program is None:
        return False
    return subprocess.run([program, "info"], capture_output=True, check=False, timeout=20).returncode == 0
