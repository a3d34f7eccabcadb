"""``content-store user …``: the first administrator, and what to do when nobody can log in any more.

Written through the DataHandler like everything else: passwords are hashed, history and events are made.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import asyncpg
import typer
from service_kit.outbox import Outbox
from service_kit.pool import plain_url
from service_kit.settings import load_settings_or_exit

from content_store.access.rights import SYSTEM_USER, AdministratorPolicy
from content_store.auth.hook import PasswordHook
from content_store.auth.passwords import MAX_PASSWORD_LENGTH, hash_password
from content_store.capture.grouping import group_rows
from content_store.capture.reader import take_capture
from content_store.capture.relations import relation_ends
from content_store.datahandler.handler import DataHandler, HandlerActor
from content_store.datahandler.run import HandlerOptions
from content_store.events.records import Origin, append_record_events, record_changes
from content_store.records.gateway import RecordGateway
from content_store.schema.loader import load_schema
from content_store.schema.model import Schema
from content_store.settings import StoreSettings

user_app = typer.Typer(no_args_is_help=True, help="Users who log in.")
T = TypeVar("T")
_PASSWORD = typer.Option(
    "--password", envvar="CONTENT_STORE_USER_PASSWORD", prompt=True, confirmation_prompt=True, hide_input=True,
    help="Asked for when it is not given.",
)  # fmt: skip


class UserCommandError(Exception):
    """The command cannot be carried out; the message is one line."""


class UserNameTakenError(UserCommandError):
    """Somebody has this name."""


@dataclass(frozen=True)
class ListedUser:
    """A user that is not deleted."""

    uid: int
    username: str
    name: str
    admin: bool
    disabled: bool


class UserAdministration:
    """What the commands do, on one connection of the service's role.

    Args:
        connection: not in a transaction.
        schema: of the store.
    """

    def __init__(self, connection: asyncpg.Connection[Any], schema: Schema) -> None:
        self._connection = connection
        self._schema = schema

    async def create(
        self, username: str, password: str, *, admin: bool = False, name: str = "", email: str = "", groups: str = ""
    ) -> int:
        """A new user; the answer is its uid.

        Raises:
            UserNameTakenError: somebody has this name.
            UserCommandError: no name, or the password is no password.
        """
        username = username.strip().lower()
        _check_password(password)
        if not username:
            raise UserCommandError("a user name is needed")
        if await self._uid(username) is not None:
            raise UserNameTakenError(f"the user name {username!r} is taken")
        row = {
            "pid": 0, "username": username, "password": password, "admin": int(admin), "realName": name,
            "email": email, "usergroup": groups, "workspace_perms": 1, "options": 3, "disable": 0,
        }  # fmt: skip
        return await self._write({"be_users": {"NEWuser": row}})

    async def set_password(self, username: str, password: str) -> int:
        """A new password; every session of the user ends.

        Raises:
            UserCommandError: there is no such user, or the password is no password.
        """
        _check_password(password)
        uid = await self._uid(username.strip().lower())
        if uid is None:
            raise UserCommandError(f"there is no user {username!r}")
        return await self._write({"be_users": {str(uid): {"password": password}}})

    async def list(self) -> list[ListedUser]:
        """Users by name."""
        rows = await self._connection.fetch(
            'SELECT uid, username, "realName" AS name, admin, disable FROM public.be_users '
            "WHERE deleted = 0 ORDER BY username, uid"
        )
        return [
            ListedUser(row["uid"], row["username"], row["name"], bool(row["admin"]), bool(row["disable"]))
            for row in rows
        ]

    async def _uid(self, username: str) -> int | None:
        uid: int | None = await self._connection.fetchval(
            "SELECT uid FROM public.be_users WHERE username = $1 AND deleted = 0", username
        )
        return uid

    async def _write(self, datamap: dict[str, Any]) -> int:
        async with self._connection.transaction():
            gateway = RecordGateway(self._connection, self._schema)
            handler = DataHandler(
                gateway,
                HandlerActor(SYSTEM_USER),
                [PasswordHook()],
                policy=AdministratorPolicy(self._schema, gateway),
                options=HandlerOptions(hash_password=hash_password),
            )
            result = await handler.process(datamap, {})
            (outcome,) = result.outcomes
            if outcome.uid is None or outcome.status not in ("written", "unchanged"):
                raise UserCommandError(f"the user was not written: {outcome.message or outcome.code}")
            deltas = group_rows(await take_capture(self._connection, None))
            changes = record_changes(deltas, relation_ends(self._schema), Origin())
            await append_record_events(self._connection, Outbox(), changes)
        return outcome.uid


def _check_password(password: str) -> None:
    if not 8 <= len(password) <= MAX_PASSWORD_LENGTH:
        raise UserCommandError(f"a password has 8 to {MAX_PASSWORD_LENGTH} characters")


@user_app.command("create")
def create(
    username: str,
    password: Annotated[str, _PASSWORD],
    admin: Annotated[bool, typer.Option(help="May do everything.")] = False,
    name: Annotated[str, typer.Option(help="Shown to others.")] = "",
    email: Annotated[str, typer.Option()] = "",
    groups: Annotated[str, typer.Option(help="Uids of groups, separated by commas.")] = "",
    if_missing: Annotated[bool, typer.Option(help="Succeed and change nothing when the name is taken.")] = False,
) -> None:
    """Create a user."""
    try:
        uid = _run(lambda users: users.create(username, password, admin=admin, name=name, email=email, groups=groups))
    except UserNameTakenError as error:
        typer.echo(str(error), err=not if_missing)
        raise typer.Exit(0 if if_missing else 1) from error
    typer.echo(f"User {username} has uid {uid}.")


@user_app.command("password")
def password(username: str, password: Annotated[str, _PASSWORD]) -> None:
    """Give a user a new password and end its sessions."""
    uid = _run(lambda users: users.set_password(username, password))
    typer.echo(f"User {username} (uid {uid}) has a new password.")


@user_app.command("list")
def list_users() -> None:
    """List users."""
    for user in _run(lambda users: users.list()):
        marks = [mark for mark, holds in (("administrator", user.admin), ("disabled", user.disabled)) if holds]
        typer.echo(f"{user.uid:>6}  {user.username}  {user.name}  {' '.join(marks)}".rstrip())


def _run(work: Callable[[UserAdministration], Coroutine[Any, Any, T]]) -> T:
    settings = load_settings_or_exit(StoreSettings)
    try:
        return asyncio.run(_connected(settings, work))
    except UserNameTakenError:
        raise
    except UserCommandError as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(1) from error
    except OSError as error:
        sys.stderr.write(f"the database cannot be reached ({type(error).__name__})\n")
        raise typer.Exit(1) from error


async def _connected(settings: StoreSettings, work: Callable[[UserAdministration], Coroutine[Any, Any, T]]) -> T:
    connection = await asyncpg.connect(plain_url(settings.database_url.get_secret_value()))
    try:
        return await work(UserAdministration(connection, load_schema(settings.schema_folders)))
    finally:
        await connection.close()
