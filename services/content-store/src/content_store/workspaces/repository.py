"""Workspaces as they are stored."""

from __future__ import annotations

from content_store.access.users import Queries
from content_store.schema.ddl import qualified_name
from content_store.schema.model import Schema
from content_store.workspaces.rules import Workspace

TABLE = "sys_workspace"


async def all_workspaces(queries: Queries, schema: Schema, schema_name: str = "public") -> list[Workspace]:
    """Every workspace that is not deleted, by uid; none where the schema has no workspaces."""
    if TABLE not in schema.tables:
        return []
    rows = await queries.fetch(f"SELECT * FROM {qualified_name(TABLE, schema_name)} WHERE deleted = 0 ORDER BY uid")
    return [Workspace.from_row(dict(row)) for row in rows]
