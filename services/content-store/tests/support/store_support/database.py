"""A migrated store database for tests, with the roles the service has in operation."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from content_store.schema.migrate import migrate_database
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls, Passwords, prepare_database

OWNER: Final = "remit_test_owner"
SERVICE: Final = "remit_test_service"
# The roles are shared by all test runs on a server, so everybody gives them the same passwords.
PASSWORDS: Final = Passwords("test-owner", "test-service")


async def prepare_test_database(admin_url: str, schema: Schema | None = None, *, server_url: str = "") -> DatabaseUrls:
    """Roles and rights of a test database, and its tables when a schema is given.

    A copy of a template needs this too, without a schema: rights on the database itself are not copied.

    Args:
        admin_url: of an administrator, naming the test database.
        schema: to migrate to.
        server_url: of an administrator, naming another database; while connected to it nothing holds the test database.
    """
    database = urlsplit(admin_url).path.lstrip("/")
    urls = await prepare_database(server_url or admin_url, database, OWNER, SERVICE, PASSWORDS)
    if schema is not None:
        await migrate_database(urls.owner, schema, SERVICE)
    return urls
