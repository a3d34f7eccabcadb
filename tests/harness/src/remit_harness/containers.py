"""PostgreSQL and Apache Kafka in containers, where a Docker engine is there and wanted."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from remit_local.brokers.ready import is_ready
from remit_local.processes import free_port

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

POSTGRES_IMAGE = "postgres:18"
KAFKA_IMAGE = "apache/kafka:4.4.0"
PASSWORD = "remit-tests"
START_SECONDS = 180.0
CLUSTER = "4L6g3nShT-eMCtK--X86sw"


def postgres_image() -> str:
    """Image of the test PostgreSQL, variable ``POSTGRES_IMAGE``."""
    return os.environ.get("POSTGRES_IMAGE", POSTGRES_IMAGE)


def kafka_image() -> str:
    """Image of the test Kafka, variable ``KAFKA_IMAGE``."""
    return os.environ.get("KAFKA_IMAGE", KAFKA_IMAGE)


def wanted() -> bool:
    """``TEST_BACKEND=docker``, or an engine that has both images already; ``TEST_BACKEND=local`` says no."""
    backend = os.environ.get("TEST_BACKEND")
    if backend is not None:
        return backend == "docker"
    return all(_present(image) for image in (postgres_image(), kafka_image()))


def _present(image: str) -> bool:
    program = shutil.which("docker")
    if program is None:
        return False
    command = [program, "image", "inspect", image]
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=10).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def start_postgres() -> tuple[str, str]:
    """Container id and administrator URL of a fresh PostgreSQL."""
    from testcontainers.core.container import DockerContainer

    container = (
        DockerContainer(postgres_image())
        .with_env("POSTGRES_PASSWORD", PASSWORD)
        .with_env("POSTGRES_INITDB_ARGS", "--locale=C --encoding=UTF8")
        .with_command("postgres -c fsync=off -c max_connections=300")
        .with_exposed_ports(5432)
    )
    container.start()
    host, port = container.get_container_host_ip(), int(container.get_exposed_port(5432))
    # The image serves its own set-up first, without TCP: ready is who answers on TCP inside the container.
    _wait(lambda: container.exec(["pg_isready", "-q", "-h", "127.0.0.1", "-U", "postgres"]).exit_code == 0, container)
    return _id(container), f"postgresql://postgres:{PASSWORD}@{host}:{port}/postgres"


def start_kafka() -> tuple[str, str]:
    """Container id and ``host:port`` of a fresh Apache Kafka."""
    from testcontainers.core.container import DockerContainer

    port = free_port()
    settings = {
        "CLUSTER_ID": CLUSTER,
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_LISTENERS": f"CLIENT://:{port},CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"CLIENT://127.0.0.1:{port}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "CLIENT",
        "KAFKA_NUM_PARTITIONS": "3",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "3",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS": "3",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        # Tests start it often and use it briefly.
        "KAFKA_HEAP_OPTS": "-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    container = DockerContainer(kafka_image()).with_bind_ports(port, port)
    for name, value in settings.items():
        container = container.with_env(name, value)
    container.start()
    _wait(lambda: is_ready(f"127.0.0.1:{port}"), container)
    return _id(container), f"127.0.0.1:{port}"


def remove(container: str) -> None:
    """Remove a container with its volumes."""
    program = shutil.which("docker") or "docker"
    subprocess.run([program, "rm", "--force", "--volumes", container], capture_output=True, check=False)


def _wait(ready: object, container: DockerContainer) -> None:
    assert callable(ready)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if ready():
            return
        time.sleep(0.3)
    logs = container.get_logs()
    remove(_id(container))
    raise TimeoutError(f"the container does not answer: {logs!r}"[-3000:])


def _id(container: DockerContainer) -> str:
    wrapped = container.get_wrapped_container()
    if wrapped is None or wrapped.id is None:
        raise RuntimeError("the container has no id")
    return str(wrapped.id)
