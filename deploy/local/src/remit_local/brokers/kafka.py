"""Apache Kafka from its published jars: one process, broker and controller together (KRaft), without Docker."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from xml.etree import ElementTree

from remit_local.brokers.base import Broker, BrokerError
from remit_local.processes import free_port

POM = Path(__file__).resolve().parents[3] / "kafka" / "pom.xml"
HEAP = "512m"
FETCH_SECONDS = 600
DONE = ".complete"


def kafka_possible() -> str | None:
    """Why Apache Kafka cannot run here, none when it can: it needs Java 17 and, to fetch its jars, Maven."""
    if shutil.which("java") is None:
        return "no java on the path"
    if (jar_folder() / DONE).exists():
        return None
    if not POM.exists():
        return "the list of its jars is not there (an installed package, not the repository)"
    if shutil.which("mvn") is None:
        return "no mvn on the path and its jars are not fetched yet"
    return None


def kafka_version() -> str:
    """The version named in the pom."""
    if not POM.exists():
        return "unknown"
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    found = ElementTree.parse(POM).findtext("m:properties/m:kafka.version", namespaces=space)  # noqa: S314 - our own file
    return found or "unknown"


def jar_folder() -> Path:
    """The cache of the jars: one folder per version in the user's cache folder."""
    cache = Path(os.environ.get("REMIT_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "remit" / f"kafka-{kafka_version()}"


def fetch_jars() -> Path:
    """Fetch the jars with Maven where they are not in the cache yet; several callers at once are fine.

    Raises:
        BrokerError: Java or Maven is missing, or Maven failed.
    """
    if (reason := kafka_possible()) is not None:
        raise BrokerError(f"Apache Kafka cannot run here: {reason}")
    folder = jar_folder()
    if (folder / DONE).exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / DONE).exists():
            command = [
                shutil.which("mvn") or "mvn", "--quiet", "--batch-mode", "--file", str(POM),
                "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}",
            ]  # fmt: skip
            result = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS
            )
            if result.returncode != 0:
                raise BrokerError(f"Maven could not fetch Apache Kafka: {result.stdout[-1500:]}{result.stderr[-500:]}")
            (folder / DONE).touch()
    return folder


class KafkaBroker(Broker):
    """One Apache Kafka process; its data lies in ``folder`` and outlives a restart."""

    name = "kafka"
    lasting = True
    transactional = True

    def __init__(self, folder: Path, *, port: int | None = None, owner: int | None = None) -> None:
        super().__init__(folder, port=port, owner=owner)
        self.controller_port = free_port()

    @property
    def configuration(self) -> Path:
        """The properties file of this start."""
        return self.folder / "server.properties"

    def launch(self) -> None:
        """Fetch the jars if need be, format the log folder on the first start, start."""
        jars = fetch_jars()
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.running:
            self.controller_port = free_port()
            self._configure()
            if not (self.folder / "logs" / "meta.properties").exists():
                self._format(jars)
        super().launch()

    def command(self) -> list[str]:
        """The Java command; the log goes to standard error and so into the log file."""
        return [*self._java(jar_folder()), "kafka.Kafka", str(self.configuration)]

    def environment(self) -> dict[str, str]:
        """Path and home; Java needs no more."""
        return {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}

    def _java(self, jars: Path) -> list[str]:
        return [
            shutil.which("java") or "java", f"-Xmx{HEAP}", "-Xms256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dlog4j2.disableJmx=true",
            "-cp", f"{jars}/*",
        ]  # fmt: skip

    def _configure(self) -> None:
        client, control = f"127.0.0.1:{self.port}", f"127.0.0.1:{self.controller_port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{control}",
            "listeners": f"CLIENT://{client},CONTROL://{control}",
            "advertised.listeners": f"CLIENT://{client}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROL:PLAINTEXT",
            "controller.listener.names": "CONTROL",
            "inter.broker.listener.name": "CLIENT",
            "log.dirs": str(self.folder / "logs"),
            "num.partitions": "3",
            "auto.create.topics.enable": "true",
            # One node: what Kafka keeps for itself cannot have replicas.
            "default.replication.factor": "1",
            "min.insync.replicas": "1",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "3",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.retention.hours": "168",
            # A killed broker may register again only when its old registration ran out.
            "broker.session.timeout.ms": "4000",
            "broker.heartbeat.interval.ms": "500",
        }
        self.configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def _format(self, jars: Path) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if cluster.startswith("-"):  # the tool would read it as an option
            cluster = f"r{cluster[1:]}"
        command = [*self._java(jars), "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self.configuration)]
        result = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, env=self.environment(), timeout=120
        )
        if result.returncode != 0:
            raise BrokerError(
                f"Apache Kafka's log folder could not be formatted: {result.stdout}{result.stderr[-1500:]}"
            )
