"""One running stack: migrated databases, the services as supervised processes, the demo site."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

from remit_local.clients import ApiClient, ChatClient
from remit_local.demo.loader import DemoLoader
from remit_local.demo.people import ADMIN
from remit_local.processes import ProcessError, Program, log_tail
from remit_local.provision import ensure_keys
from remit_local.services import GATEWAY, RUNTIME, STORE, StackPlan, command, migrations, programs, store_environment
from remit_local.supervisor import Supervisor

READY_SECONDS = 60.0
MIGRATE_SECONDS = 180.0


def migrate(plan: StackPlan) -> None:
    """Bring the three databases up to date, side by side.

    Raises:
        ProcessError: one of them failed, e.g. because its data is of a newer version; with its words.
    """
    ensure_keys(plan.keys)
    started = [(program, program.log.stat().st_size if program.log.exists() else 0) for program in migrations(plan)]
    for program, _ in started:
        program.start()
    for program, size in started:
        _finish(program, size)


def _finish(program: Program, size: int) -> None:
    if program.process is None:
        raise ProcessError(f"{program.name} was not started")
    try:
        code = program.process.wait(MIGRATE_SECONDS)
    except subprocess.TimeoutExpired as error:
        program.kill()
        raise ProcessError(f"{program.name} did not end: {program.tail()}") from error
    if code != 0:
        with program.log.open("rb") as handle:
            handle.seek(size)
            words = handle.read().decode("utf-8", "replace").strip()
        raise ProcessError(f"{program.name} failed:\n{words[-2000:]}")


def create_administrator(plan: StackPlan, password: str) -> None:
    """The first administrator, by the store's own command line.

    Raises:
        ProcessError: the command failed.
    """
    await_administrator(begin_administrator(plan, password))


def begin_administrator(plan: StackPlan, password: str) -> Program:
    """Start the command that makes the first administrator; it needs only the database."""
    arguments = command(STORE, "user", "create", ADMIN, "--admin")
    environment = store_environment(plan) | {"CONTENT_STORE_USER_PASSWORD": password}
    program = Program("administrator", arguments, environment, plan.folder / "logs" / "administrator.log", plan.owner)
    program.log.unlink(missing_ok=True)
    program.start()
    return program


def await_administrator(program: Program) -> None:
    """Wait for the end of what ``begin_administrator`` started.

    Raises:
        ProcessError: the command failed, with its words.
    """
    _finish(program, 0)


def load_demo(plan: StackPlan) -> dict[str, Any]:
    """Load the demo site into a store that runs; the answer names its records."""
    with ApiClient(plan.url(STORE)) as store:
        return DemoLoader(store, plan.secrets, plan.databases.store_owner).load()


class Stack:
    """The services of a plan, running.

    Attributes:
        plan: addresses and settings.
        supervisor: restarts what dies.
    """

    def __init__(self, plan: StackPlan, tell: Callable[[str], None] = lambda line: None) -> None:
        self.plan = plan
        self.supervisor = Supervisor(programs(plan), tell)

    def start(self, *, watch: bool = True) -> None:
        """Start everything and wait until the three APIs are ready.

        Args:
            watch: start again what dies; off for tests that kill programs and start them when they want.

        Raises:
            ProcessError: a service does not become ready.
        """
        self.supervisor.start(watch=watch)
        for service in (STORE, RUNTIME, GATEWAY):
            self.wait_ready(service)

    def stop(self) -> None:
        """End everything in good order."""
        self.supervisor.stop()

    def wait_ready(self, service: str) -> None:
        """Block until a service's ``/readyz`` says yes."""
        with ApiClient(self.plan.url(service)) as client:
            self.supervisor.wait_until(client.ready, service, READY_SECONDS)

    def program(self, name: str) -> Program:
        """One of the programs, to kill or pause it."""
        for program in self.supervisor.programs:
            if program.name == name:
                return program
        raise KeyError(name)

    def chat(self, username: str, language: str = "en") -> ChatClient:
        """A chat client that is logged in."""
        client = ChatClient(self.plan.url(GATEWAY), language=language)
        client.login(username, self.plan.secrets[username])
        return client

    def store(self, username: str = ADMIN) -> ApiClient:
        """A client of the store's own API that is logged in."""
        client = ApiClient(self.plan.url(STORE))
        client.login(username, self.plan.secrets[username])
        return client

    def logs(self) -> str:
        """The ends of all logs, for a failing test."""
        return "\n\n".join(f"--- {p.name}\n{log_tail(p.log, 3000)}" for p in self.supervisor.programs)
