"""The command ``agent-runtime``: migrate, serve, worker; the same program everywhere.

Each command loads what it needs: the application, the worker and their libraries take a second that ``migrate`` need
not spend, and neither does ``worker`` on the application.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from service_kit.database import create_engine
from service_kit.logging import configure_logging
from service_kit.migrations import Migrations
from service_kit.problems import ProblemError
from service_kit.settings import load_settings_or_exit
from sqlalchemy.exc import SQLAlchemyError

from agent_runtime.settings import PACKAGE, SERVICE, RuntimeSettings

if TYPE_CHECKING:
    from agent_runtime.deps import Runtime
    from agent_runtime.runs.retention import Purged

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Runs of agents: the tool loop, approvals, events.")


@app.command()
def migrate() -> None:
    """Bring the database to this version (AGENT_RUNTIME_OWNER_DATABASE_URL, else AGENT_RUNTIME_DATABASE_URL)."""
    settings = load_settings_or_exit(RuntimeSettings)
    url = (settings.owner_database_url or settings.database_url).get_secret_value()
    try:
        state = asyncio.run(_migrate(url))
    except ProblemError as error:
        document = error.document()
        _stop(str(document.get("detail") or document["title"]))
    except (OSError, SQLAlchemyError) as error:
        _stop(f"the database does not answer ({type(error).__name__})")
    typer.echo(f"The database is at revision {state}.")


@app.command()
def serve(
    worker: Annotated[bool, typer.Option(help="Also execute runs in this process.")] = False,
    relay: Annotated[
        bool, typer.Option(help="Also publish events from this process; one of all processes leads.")
    ] = True,
) -> None:
    """Answer HTTP requests."""
    import uvicorn
    from service_kit.metrics import Metrics

    from agent_runtime.app import build_app
    from agent_runtime.events.relaying import run_relay
    from agent_runtime.worker import Worker

    runtime = _runtime()
    metrics = Metrics(SERVICE)
    beside: list[Callable[[], Any]] = []
    if relay:
        beside.append(lambda: _beside(run_relay(runtime, metrics)))
    if worker:
        beside.append(lambda: _beside(Worker(runtime, "serve").run()))
    try:
        application = build_app(runtime, background=beside, metrics=metrics)
    except _stops_the_start() as error:
        _stop(str(error))
    settings = runtime.settings
    uvicorn.run(application, host=settings.host, port=settings.port, log_config=None, access_log=False)


@app.command()
def worker(
    relay: Annotated[
        bool, typer.Option(help="Also publish events from this process; one of all processes leads.")
    ] = True,
) -> None:
    """Execute queued runs until stopped."""
    runtime = _runtime()
    asyncio.run(_work(runtime, relay))


@app.command()
def purge() -> None:
    """Remove what is older than its retention, and say how much that was."""
    removed = asyncio.run(_purge(_runtime()))
    typer.echo(
        f"Cancelled {removed.cancelled} undecided runs. Removed {removed.runs} runs, {removed.governance} governance "
        f"entries and {removed.keys} idempotency keys."
    )


def main() -> None:
    """Entry point."""
    app()


async def _migrate(url: str) -> str:
    engine = create_engine(url, application_name=f"{SERVICE}-migrate", pool_size=2)
    try:
        state = await Migrations(PACKAGE).upgrade(engine)
    finally:
        await engine.dispose()
    return str(state.revision)


async def _purge(runtime: Runtime) -> Purged:
    from agent_runtime.runs.retention import purge_old

    try:
        return await purge_old(runtime.journal, runtime.settings)
    finally:
        await runtime.stop()


async def _work(runtime: Runtime, relay: bool) -> None:
    from agent_runtime.events.relaying import run_relay
    from agent_runtime.worker import Worker

    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    await runtime.start()
    tasks = [asyncio.create_task(Worker(runtime).run())]
    if relay:
        tasks.append(asyncio.create_task(run_relay(runtime)))
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([*tasks, stopped], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (*tasks, stopped):
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await runtime.stop()
    for result in results:
        if isinstance(result, Exception):
            raise result


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _runtime() -> Runtime:
    from agent_runtime.deps import build_runtime, check_models

    settings = load_settings_or_exit(RuntimeSettings)
    configure_logging(SERVICE, settings.log_level, settings.log_format)
    try:
        runtime = build_runtime(settings)
        check_models(runtime)
    except _stops_the_start() as error:
        _stop(str(error))
    return runtime


def _stops_the_start() -> tuple[type[Exception], ...]:
    """What is wrong with settings, keys or registrations, and is said in one line."""
    from service_kit.auth.keys import KeyMaterialError

    from agent_runtime.configurations.registry import ConfigurationFileError
    from agent_runtime.models.port import ModelNotConfigured
    from agent_runtime.rules.engine import RuleRegistrationError
    from agent_runtime.runs.envelope import StateKeyError
    from agent_runtime.tools.registry import ToolRegistrationError

    return (
        ConfigurationFileError,
        ModelNotConfigured,
        StateKeyError,
        ToolRegistrationError,
        RuleRegistrationError,
        KeyMaterialError,
    )


def _stop(reason: str) -> NoReturn:
    typer.echo(reason, err=True)
    raise typer.Exit(2)
