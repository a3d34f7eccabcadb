"""All record tables on the one connection: else neither its transaction nor its triggers hold the call (S-60)."""

from __future__ import annotations

from typing import Final

from service_kit.problems import ProblemError

from content_store.records.gateway import RecordGateway

# Ordinary and partitioned tables; a foreign table, or a view of one, leads to another server.
_ELSEWHERE: Final = """
SELECT t.name FROM unnest($1::text[]) AS t(name)
 WHERE NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                    WHERE n.nspname = $2 AND c.relname = t.name AND c.relkind IN ('r', 'p')
                      AND NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhrelid
                                       WHERE i.inhparent = c.oid AND p.relkind = 'f'))
 ORDER BY 1
"""


class TablesElsewhere(ProblemError):
    """A record table lies somewhere else than in the database of the call; member ``tables`` names them."""

    code = "tables_elsewhere"
    status = 503
    title = "Not all tables lie in the database of the call"


class OneConnection:
    """Looks once in the life of a process: tables are only exchanged by a migration, which ends in a restart."""

    def __init__(self) -> None:
        self._found = False

    async def require(self, gateway: RecordGateway) -> None:
        """Every record table and MM table of the schema is a table here.

        Raises:
            TablesElsewhere: one is not; the call must not run.
        """
        if self._found:
            return
        names = sorted({*gateway.schema.tables, *gateway.schema.mm_tables})
        rows = await gateway.fetch(_ELSEWHERE, names, gateway.schema_name)
        if rows:
            raise TablesElsewhere(members={"tables": [row["name"] for row in rows]})
        self._found = True
