"""What every broker of the local stack can do, whatever program it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from remit_local.brokers.ready import wait_until_ready
from remit_local.processes import STOP_SECONDS, ProcessError, Program, free_port, log_tail, port_taken


class BrokerError(RuntimeError):
    """The broker could not be fetched or started; the text says why."""


class Broker(ABC):
    """A broker that speaks Kafka's protocol on 127.0.0.1.

    Attributes:
        name: for people.
        lasting: it keeps its messages over a restart.
        transactional: producers may be idempotent and use transactions.
    """

    name: str
    lasting: bool
    transactional: bool
    start_seconds: float = 60.0

    def __init__(self, folder: Path, *, port: int | None = None, owner: int | None = None) -> None:
        self.folder = folder
        self._fixed_port = port
        self.port = port or free_port()
        self.owner = owner
        self._program: Program | None = None

    @property
    def address(self) -> str:
        """``host:port`` for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Address as the services take it, ``kafka://host:port``."""
        return f"kafka://{self.address}"

    @property
    def log(self) -> Path:
        """Its log file."""
        return self.folder / "broker.log"

    @property
    def pid(self) -> int:
        """Process id of the broker, or of the guard that watches it."""
        return self.program.pid

    @property
    def program(self) -> Program:
        """Its process, to be started again on the same address when it dies."""
        if self._program is None:
            raise ProcessError(f"{self.name} was not started")
        return self._program

    @property
    def running(self) -> bool:
        """The process is there."""
        return self._program is not None and self._program.running

    def start(self) -> None:
        """Start the broker and wait until a client can produce and consume.

        Raises:
            BrokerError: the port is taken, or the broker ended or did not answer.
        """
        self.launch()
        self.await_ready()

    def launch(self) -> None:
        """Start its process where it does not run; it answers some time later.

        Raises:
            BrokerError: the port is taken.
        """
        if self.running:
            return
        if port_taken(self.port):
            if self._fixed_port is not None:
                raise BrokerError(f"port {self.port} is taken by another program")
            self.port = free_port()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._program = Program(self.name, self.command(), self.environment(), self.log, self.owner)
        self._program.start()

    def await_ready(self) -> None:
        """Block until a client can produce and consume.

        Raises:
            BrokerError: the broker ended or did not answer.
        """
        try:
            wait_until_ready(self.address, self.start_seconds, lambda: self.running)
        except TimeoutError as error:
            self.kill()
            raise BrokerError(f"{self.name} does not answer on {self.address}: {log_tail(self.log)}") from error

    def stop(self) -> None:
        """End it in good order."""
        if self._program is not None:
            self._program.stop(STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL."""
        if self._program is not None:
            self._program.kill()

    def restart(self) -> None:
        """Stop it if it runs and start it on the same address."""
        self.stop()
        self._fixed_port = self.port
        self.start()

    @abstractmethod
    def command(self) -> list[str]:
        """Program and arguments."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Complete environment."""
