"""The command ``remit``: the whole stack on one machine, without Docker."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from remit_local.brokers.base import BrokerError
from remit_local.chat import TerminalChat
from remit_local.clients import ApiClient, ApiError, ChatClient
from remit_local.demo.loader import DemoLoadError
from remit_local.demo.run import BROKERS, DemoOptions, RunningDemo, running_demo
from remit_local.demo.story import Story, StoryError
from remit_local.postgres import PostgresError, remove_data, stop_postgres
from remit_local.processes import ProcessError
from remit_local.services import GATEWAY, STORE
from remit_local.state import State, StateError, default_folder, forget, held, open_state

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Remit on this machine, without Docker.")
console = Console(highlight=False)

REFUSALS = (ApiError, BrokerError, DemoLoadError, PostgresError, ProcessError, StateError, StoryError, TimeoutError)
StateOption = Annotated[Path | None, typer.Option("--state", envvar="REMIT_STATE", help="Folder of data and logs.")]
Port = Annotated[int | None, typer.Option(min=1, max=65535)]


class Interrupted(BaseException):
    """SIGTERM, handled like Ctrl-C: everything is stopped in order."""


@contextmanager
def _told() -> Iterator[None]:
    """How a command ends that could not go on or was stopped: one line, and its exit code."""
    try:
        yield
    except REFUSALS as error:
        _fail(str(error))
    except (KeyboardInterrupt, Interrupted):
        console.print("\nstopped")
        raise typer.Exit(130) from None


@app.command()
def demo(
    once: Annotated[
        bool, typer.Option("--once", help="End after the conversation, 0 when it went as it must.")
    ] = False,
    broker: Annotated[str, typer.Option(help="tansu (embedded, keeps nothing) or kafka.")] = "tansu",
    reset: Annotated[bool, typer.Option("--reset", help="Forget the data of earlier starts.")] = False,
    state: StateOption = None,
    gateway_port: Annotated[int | None, typer.Option(envvar="REMIT_GATEWAY_PORT", min=1, max=65535)] = None,
    store_port: Annotated[int | None, typer.Option(envvar="REMIT_STORE_PORT", min=1, max=65535)] = None,
    runtime_port: Annotated[int | None, typer.Option(envvar="REMIT_RUNTIME_PORT", min=1, max=65535)] = None,
    postgres_port: Annotated[int | None, typer.Option(envvar="REMIT_POSTGRES_PORT", min=1, max=65535)] = None,
    broker_port: Annotated[int | None, typer.Option(envvar="REMIT_BROKER_PORT", min=1, max=65535)] = None,
) -> None:
    """Start everything, play one conversation, then chat."""
    if broker not in BROKERS:
        _fail(f"--broker is one of {', '.join(BROKERS)}")
    options = DemoOptions(broker, gateway_port, store_port, runtime_port, postgres_port, broker_port)
    folder = state or default_folder()
    _on_sigterm()
    with _told(), held(folder):
        if reset:
            _forget(folder)
        with running_demo(open_state(folder), options, _tell) as running:
            _play(running)
            if not once and sys.stdin.isatty():
                _talk(running)


@app.command()
def chat(state: StateOption = None) -> None:
    """Chat with the stack that runs (remit demo in another terminal), or start one."""
    folder = state or default_folder()
    _on_sigterm()
    with _told():
        known = State(folder).running() if folder.is_dir() else None
        if known is not None:
            _terminal_chat(known["services"][GATEWAY], open_state(folder))
            return
        with held(folder), running_demo(open_state(folder), DemoOptions(), _tell) as running:
            _talk(running)


@app.command()
def status(state: StateOption = None) -> None:
    """What runs, where, and whether it is ready."""
    folder = state or default_folder()
    known = State(folder).running() if folder.is_dir() else None
    if known is None:
        console.print(f"nothing runs ({folder})")
        raise typer.Exit(3)
    bad = False
    for name, url in known["services"].items():
        with ApiClient(url) as client:
            ready = client.ready()
        bad = bad or not ready
        console.print(f"{name:15} {url}  {'ready' if ready else 'not ready'}")
    console.print(f"{'broker':15} {known['broker']['address']}  {known['broker']['kind']}")
    console.print(f"{'postgres':15} 127.0.0.1:{known['postgres']['port']}")
    console.print(f"logs: {folder / 'logs'}")
    raise typer.Exit(1 if bad else 0)


@app.command()
def reset(state: StateOption = None) -> None:
    """Delete the data, logs and secrets of earlier starts."""
    folder = state or default_folder()
    if not folder.is_dir():
        console.print(f"nothing to delete ({folder})")
        return
    try:
        with held(folder):
            _forget(folder)
    except REFUSALS as error:
        _fail(str(error))
    console.print(f"deleted: {folder}")


def _play(running: RunningDemo) -> None:
    stack = running.stack
    with stack.chat("emma") as editor, stack.store("emma") as records:
        Story(console, editor, records, running.broker.url, running.state.demo).play()
    console.print()
    gateway, store = stack.plan.url(GATEWAY), stack.plan.url(STORE)
    console.print(f"The chat API is {gateway}/v1, its documentation {gateway}/docs; the store's {store}/docs.")
    people = ", ".join(f"{name} / {running.state.secrets[name]}" for name in ("emma", "jonas", "admin"))
    console.print(f"People who may log in (this machine only): {people}")
    if not running.broker.lasting:
        console.print(
            "The embedded broker keeps nothing over a restart; the data in PostgreSQL stays. "
            "BROKER=kafka runs on Apache Kafka."
        )


def _talk(running: RunningDemo) -> None:
    console.print()
    _terminal_chat(running.stack.plan.url(GATEWAY), running.state)


def _terminal_chat(gateway: str, state: State) -> None:
    def login(name: str) -> ChatClient:
        if name not in ("emma", "jonas", "admin"):
            raise ApiError(401, "login_failed", {"detail": f"nobody here is called {name!r}"})
        client = ChatClient(gateway)
        client.login(name, state.secrets[name])
        return client

    TerminalChat(console, login, input).run()


def _forget(folder: Path) -> None:
    state = State(folder)
    stop_postgres(state.postgres)
    remove_data(state.postgres)
    forget(folder)


def _tell(line: str) -> None:
    console.print(f"[dim]· {escape(line)}[/]")


def _fail(reason: str) -> NoReturn:
    Console(stderr=True, highlight=False).print(f"[red]{escape(reason)}[/]")
    raise typer.Exit(1)


def _on_sigterm() -> None:
    def handle(_number: int, _frame: object) -> None:
        raise Interrupted

    signal.signal(signal.SIGTERM, handle)


def main() -> None:
    """Entry point."""
    app()


if __name__ == "__main__":
    main()
