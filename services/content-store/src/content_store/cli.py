"""The command ``content-store``."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import asyncpg
import typer
from service_kit.migrations import DatabaseNewerError, MigrationLockedError
from service_kit.pool import plain_url
from service_kit.settings import SettingsError, load_settings_or_exit

from content_store.auth.commands import user_app
from content_store.refindex_commands import refindex_app
from content_store.schema.files import SchemaFileError
from content_store.schema.loader import load_schema
from content_store.schema.migrate import (
    DestructiveChangeError,
    MigrationReport,
    TableChangeError,
    TableNameTakenError,
    migrate_database,
)
from content_store.schema.provision import Passwords, prepare_database
from content_store.schema.roles import PrivilegedRoleError, refuse_privileged_role
from content_store.settings import DatabaseSettings, StoreSettings

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Records, rights and calls of a Remit site.")
app.add_typer(user_app, name="user")
app.add_typer(refindex_app, name="refindex")


@app.command()
def migrate(
    allow_destructive: Annotated[
        bool, typer.Option(help="Also drop and narrow tables and columns where the table files ask for it.")
    ] = False,
) -> None:
    """Bring the database to this version and these table files. Runs as the owner (CONTENT_STORE_OWNER_DATABASE_URL)."""
    settings = load_settings_or_exit(DatabaseSettings)
    if settings.owner_database_url is None:
        raise _failure("CONTENT_STORE_OWNER_DATABASE_URL: is not set")
    try:
        report = asyncio.run(
            migrate_database(
                settings.owner_database_url.get_secret_value(),
                load_schema(settings.schema_folders),
                settings.service_role,
                allow_destructive=allow_destructive,
                lock_timeout=settings.migration_lock_timeout,
            )
        )
    except DestructiveChangeError as error:
        raise _failure(*error.changes, "Nothing was changed. To do it anyway: --allow-destructive") from error
    except (SchemaFileError, TableNameTakenError, TableChangeError) as error:
        raise _failure(*str(error).splitlines()) from error
    except (DatabaseNewerError, MigrationLockedError) as error:
        document = error.document()
        raise _failure(str(document.get("detail") or document["title"])) from error
    except (OSError, asyncpg.PostgresError) as error:
        raise _unreachable(error) from error
    typer.echo(_summary(report))


@app.command()
def provision(
    admin_url: Annotated[str, typer.Option(envvar="CONTENT_STORE_ADMIN_DATABASE_URL", help="URL of a superuser.")],
    owner_password: Annotated[str, typer.Option(envvar="CONTENT_STORE_OWNER_PASSWORD")],
    service_password: Annotated[str, typer.Option(envvar="CONTENT_STORE_SERVICE_PASSWORD")],
    database: Annotated[str, typer.Option(envvar="CONTENT_STORE_DATABASE_NAME")] = "content_store",
    owner: Annotated[str, typer.Option(envvar="CONTENT_STORE_OWNER_ROLE")] = "content_store_owner",
    service: Annotated[str, typer.Option(envvar="CONTENT_STORE_SERVICE_ROLE")] = "content_store_service",
) -> None:
    """Create the database with its two roles, where they are missing."""
    passwords = Passwords(owner_password, service_password)
    try:
        asyncio.run(prepare_database(admin_url, database, owner, service, passwords))
    except (OSError, asyncpg.PostgresError) as error:
        raise _unreachable(error) from error
    typer.echo(f"Database {database} is there, owned by {owner}, used by {service}.")


@app.command()
def serve() -> None:
    """Run the service, as a database role that owns nothing (CONTENT_STORE_DATABASE_URL)."""
    # The application is only needed here, and migrations should not have to load it.
    from service_kit.auth.keys import KeyMaterialError

    from content_store.app import serve as run

    settings = load_settings_or_exit(StoreSettings)
    try:
        asyncio.run(_check_role(settings.database_url.get_secret_value()))
        run(settings)
    except (PrivilegedRoleError, KeyMaterialError, SettingsError, SchemaFileError) as error:
        raise _failure(*str(error).splitlines()) from error
    except (OSError, asyncpg.PostgresError) as error:
        raise _unreachable(error) from error


async def _check_role(url: str) -> None:
    connection = await asyncpg.connect(plain_url(url))
    try:
        await refuse_privileged_role(connection)
    finally:
        await connection.close()


def _summary(report: MigrationReport) -> str:
    lines = [
        f"{word}: {', '.join(names)}"
        for word, names in (("Created", report.created), ("Changed", report.changed), ("Dropped", report.dropped))
        if names
    ]
    return "\n".join([*lines, f"The database is at {report.database_state[:17]}."])


def _unreachable(error: Exception) -> typer.Exit:
    # What the server says has no password in it; what the operating system says may have the address twice.
    reason = str(error) if isinstance(error, asyncpg.PostgresError) else type(error).__name__
    return _failure(f"the database cannot be used: {reason}")


def _failure(*lines: str) -> typer.Exit:
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return typer.Exit(1)


def main() -> None:
    """Entry point."""
    app()


if __name__ == "__main__":
    main()
