"""The environment Alembic runs every service's revisions in; the connection is handed over by ``Migrations``."""

from __future__ import annotations

from alembic import context


def run() -> None:
    """Run the revisions on the connection of the configuration's attributes."""
    attributes = context.config.attributes
    context.configure(
        connection=attributes["connection"],
        target_metadata=attributes.get("metadata"),
        version_table_schema=attributes.get("schema"),
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run()
