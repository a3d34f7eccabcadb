"""The store's own tables, as Alembic revisions. Record tables come from the schema files instead."""
