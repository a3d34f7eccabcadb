"""SQL of the scope's reads (pure): identities of rows, and the page tree above and below them."""

from __future__ import annotations

from collections.abc import Sequence

from content_store.schema.ddl import qualified_name, quote_identifier
from content_store.schema.model import Schema, TableSchema
from content_store.scope.child_relations import ChildRelations
from content_store.scope.places import PAGES

# What a row of every statement here consists of.
COLUMNS = "tab, uid, pid, language, parent, version_of, workspace, state, deleted, pointers"


class ScopeStatements:
    """Statements for one schema; texts are made once per set of tables, so the server's plans are kept."""

    def __init__(self, schema: Schema, relations: ChildRelations, schema_name: str = "public") -> None:
        self._schema = schema
        self._relations = relations
        self._schema_name = schema_name
        self._loads: dict[tuple[tuple[str, ...], bool], str] = {}

    def identity(self, table: str, alias: str) -> str:
        """Select list of the identity of a row."""
        described = self._schema[table]
        return ", ".join(
            (
                f"'{table}'::text AS tab",
                f"{alias}.uid",
                f"{alias}.pid",
                f"{self._column(described, described.language_field, alias, 'NULL::bigint')} AS language",
                f"{self._column(described, described.parent_field, alias)} AS parent",
                f"{self._column(described, 't3ver_oid', alias)} AS version_of",
                f"{self._column(described, 't3ver_wsid', alias)} AS workspace",
                f"{self._column(described, 't3ver_state', alias)} AS state",
                f"({self._column(described, described.delete_field, alias)} <> 0) AS deleted",
                f"{self._pointers(table, alias)} AS pointers",
            )
        )

    @staticmethod
    def _column(table: TableSchema, name: str | None, alias: str, missing: str = "0::bigint") -> str:
        return f"{alias}.{quote_identifier(name)}::bigint" if name in table.db_columns and name else missing

    def _pointers(self, table: str, alias: str) -> str:
        names = self._relations.pointer_columns(table)
        pairs = ", ".join(f"'{name}', {alias}.{quote_identifier(name)}" for name in names)
        return f"jsonb_build_object({pairs})" if pairs else "NULL::jsonb"

    def load(self, tables: Sequence[str], *, workspace: bool) -> str:
        """Rows by uid, and every page above them, in one recursive statement.

        Parameters of the statement: one array of uids per table in the given order, then an array of further pages,
        then, in a workspace, its id. ``UNION`` keeps each page once, so a circle of pages ends the walk (a path per
        start, as a CYCLE clause keeps it, would read shared ancestors once per row).
        """
        key = (tuple(tables), workspace)
        if key not in self._loads:
            self._loads[key] = self._load(tables, workspace)
        return self._loads[key]

    def _load(self, tables: Sequence[str], workspace: bool) -> str:
        pages, own = len(tables) + 1, len(tables) + 2
        named = " UNION ALL ".join(self._named(t, i, own if workspace else None) for i, t in enumerate(tables, 1))
        start = f"SELECT unnest(${pages}::bigint[]) AS uid"
        if named:
            start += (
                " UNION SELECT pid FROM named UNION SELECT v.uid FROM named CROSS JOIN LATERAL "
                f"(VALUES (named.uid), (parent), (version_of)) v(uid) WHERE tab = '{PAGES}'"
            )
        version = f" OR (p.t3ver_oid = walk.uid AND p.t3ver_oid <> 0 AND p.t3ver_wsid = ${own})" if workspace else ""
        name = qualified_name(PAGES, self._schema_name)
        described = self._schema[PAGES]
        up = ", ".join(
            f"({self._column(described, column, 'p')})" for column in ("pid", described.parent_field, "t3ver_oid")
        )
        named_cte = f"named({COLUMNS}) AS MATERIALIZED ({named}), " if named else ""
        named_rows = f"SELECT {COLUMNS} FROM named UNION ALL " if named else ""
        return (
            f"WITH RECURSIVE {named_cte}"
            f"walk(uid) AS (SELECT uid FROM ({start}) AS start WHERE uid > 0 UNION "
            f"SELECT v.uid FROM walk JOIN {name} p ON p.uid = walk.uid{version} "
            f"CROSS JOIN LATERAL (VALUES {up}) v(uid) WHERE v.uid > 0) "
            f"{named_rows}SELECT {self.identity(PAGES, 'p')} FROM walk JOIN {name} p ON p.uid = walk.uid{version}"
        )

    def _named(self, table: str, parameter: int, workspace: int | None) -> str:
        condition = f"r.uid = ANY(${parameter}::bigint[])"
        if workspace is not None and self._schema[table].has_version_columns:
            condition += (
                f" OR (r.t3ver_oid <> 0 AND r.t3ver_oid = ANY(${parameter}::bigint[]) "
                f"AND r.t3ver_wsid = ${workspace}::bigint)"
            )
        return f"SELECT {self.identity(table, 'r')} FROM {qualified_name(table, self._schema_name)} r WHERE {condition}"

    def below(self) -> str:
        """Every page below some pages, in all workspaces, with its level: ``root, uid, level``.

        Parameter: an array of pages. A page reached twice has its greatest level.
        """
        name = qualified_name(PAGES, self._schema_name)
        pages = self._schema[PAGES]
        language = self._column(pages, pages.language_field, "p")
        delete = self._column(pages, pages.delete_field, "p")
        version = self._column(pages, "t3ver_oid", "p")
        return (
            "WITH RECURSIVE down(root, uid, level) AS (SELECT r, r, 0 FROM unnest($1::bigint[]) AS r UNION ALL "
            f"SELECT down.root, CASE WHEN {version} > 0 THEN {version} ELSE p.uid END, down.level + 1 "
            f"FROM down JOIN {name} p ON p.pid = down.uid WHERE {language} <= 0 AND {delete} = 0 "
            ") CYCLE uid SET looped USING path "
            "SELECT root, uid, max(level) AS level FROM down WHERE level > 0 AND NOT looped GROUP BY root, uid"
        )

    def translations(self, table: str) -> str:
        """Translations of some records in all workspaces (S-47). Parameter: an array of uids, versions' included."""
        described = self._schema[table]
        parent = quote_identifier(described.parent_field or "")
        delete = self._column(described, described.delete_field, "r")
        language = self._column(described, described.language_field, "r")
        return (
            f"SELECT {self.identity(table, 'r')} FROM {qualified_name(table, self._schema_name)} r "
            f"WHERE r.{parent} = ANY($1::bigint[]) AND r.{parent} <> 0 AND {language} > 0 AND {delete} = 0"
        )

    def versions(self, table: str) -> str:
        """Uids of all versions of some live rows. Parameter: an array of live uids."""
        return (
            f"SELECT uid FROM {qualified_name(table, self._schema_name)} "
            "WHERE t3ver_oid <> 0 AND t3ver_oid = ANY($1::bigint[])"
        )
