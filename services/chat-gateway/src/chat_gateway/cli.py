"""The command ``chat-gateway``. Each command loads what it needs; ``migrate`` is spared the application."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from service_kit.database import create_engine
from service_kit.logging import configure_logging
from service_kit.migrations import DatabaseNewerError, MigrationLockedError, Migrations, MigrationState
from service_kit.problems import ProblemError
from service_kit.settings import load_settings_or_exit
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine

from chat_gateway.settings import PACKAGE, SERVICE, GatewaySettings

if TYPE_CHECKING:
    from service_kit.bus import EventBus

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Conversations, cards and change lists of Remit.")
dlq = typer.Typer(no_args_is_help=True, help="Messages that could not be handled.")
app.add_typer(dlq, name="dlq")
GRACEFUL_SECONDS = 5
T = TypeVar("T")


def _settings() -> GatewaySettings:
    settings = load_settings_or_exit(GatewaySettings)
    configure_logging(SERVICE, settings.log_level, settings.log_format)
    return settings


@app.command()
def migrate() -> None:
    """Bring the database to this version. Runs as the owner where CHAT_GATEWAY_OWNER_DATABASE_URL is set."""
    settings = _settings()
    try:
        state = asyncio.run(_migrate(settings))
    except (DatabaseNewerError, MigrationLockedError) as error:
        raise _failure(_sentence(error)) from error
    except OSError as error:
        raise _failure(f"the database cannot be reached ({type(error).__name__})") from error
    typer.echo(f"The database is at revision {state.revision}.")


async def _migrate(settings: GatewaySettings) -> MigrationState:
    service = settings.database_url.get_secret_value()
    owner = settings.owner_database_url.get_secret_value() if settings.owner_database_url is not None else service
    engine = create_engine(owner, application_name=f"{SERVICE}-migrate", pool_size=4)
    try:
        state = await Migrations(PACKAGE).upgrade(engine)
        role = make_url(service).username
        if role and role != make_url(owner).username:
            await _grant(engine, role)
        return state
    finally:
        await engine.dispose()


async def _grant(engine: AsyncEngine, role: str) -> None:
    """Let the service's role read and write the tables it does not own."""
    name = engine.dialect.identifier_preparer.quote(role)
    async with engine.begin() as connection:
        await connection.execute(text(f"GRANT USAGE ON SCHEMA public TO {name}"))
        await connection.execute(text(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}"))
        await connection.execute(text(f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {name}"))


@app.command()
def serve() -> None:
    """Serve the chat API."""
    import uvicorn

    from chat_gateway.app import build_app

    settings = _settings()
    uvicorn.run(
        build_app(settings),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )


@app.command()
def consume() -> None:
    """Project the runs' steps from the broker into the conversations."""
    from service_kit.auth.keys import KeyMaterialError
    from service_kit.serving import ServerFailedError

    from chat_gateway.consumer import consume as run_consumer

    settings = _settings()
    try:
        asyncio.run(_until_stopped(run_consumer(settings)))
    except ProblemError as error:
        raise _failure(_sentence(error)) from error
    except ServerFailedError as error:
        raise _failure(f"CHAT_GATEWAY_CONSUMER_PORT: {error}") from error
    except KeyMaterialError as error:
        raise _failure(f"CHAT_GATEWAY_SIGNING_KEY: {error}") from error


async def _until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run until the work ends or a signal asks to stop; what is in flight is finished first."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return


@dlq.command("list")
def list_letters() -> None:
    """Show what was given up, with the reason; contents are not shown."""
    from chat_gateway.deadletters.service import list_dead_letters

    letters = asyncio.run(_with_bus(_settings(), list_dead_letters))
    for letter in letters:
        place = f"{letter.partition}:{letter.offset}"
        typer.echo(f"{place}\t{letter.event_type or '-'}\t{letter.event_id or '-'}\t{letter.attempts}\t{letter.reason}")
    typer.echo(f"{len(letters)} message(s).")


@dlq.command("replay")
def replay(
    group: Annotated[str | None, typer.Option(help="Consumer group; the configured one unless told.")] = None,
) -> None:
    """Send what was given up to its topic again; each message once."""
    from chat_gateway.deadletters.service import replay_dead_letters

    settings = _settings()

    async def work(bus: EventBus) -> int:
        return await replay_dead_letters(bus, group or settings.consumer_group)

    typer.echo(f"{asyncio.run(_with_bus(settings, work))} message(s) sent again.")


async def _with_bus(settings: GatewaySettings, work: Callable[[EventBus], Awaitable[T]]) -> T:
    from service_kit.bus import BusError

    from chat_gateway.consumer import start_bus

    bus = await start_bus(settings)
    try:
        return await work(bus)
    except BusError as error:
        raise _failure(f"the broker does not answer ({error})") from error
    finally:
        await bus.stop()


def _sentence(error: ProblemError) -> str:
    document = error.document()
    return str(document.get("detail") or document["title"])


def _failure(*lines: str) -> typer.Exit:
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return typer.Exit(1)


def main() -> None:
    """Entry point."""
    app()


if __name__ == "__main__":
    main()
