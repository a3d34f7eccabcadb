"""The role a service must not run as."""

from __future__ import annotations

from typing import Any, Final

import asyncpg

# Each line is a way around the capture: as superuser or owner, by becoming the owner, by reading or writing its rows,
# or by a right to make roles and thereby any of these.
_PRIVILEGES: Final = """
SELECT r.rolsuper AS superuser, r.rolcreaterole AS creates_roles, r.rolreplication OR r.rolbypassrls AS replication,
       d.datdba = r.oid OR EXISTS (
         SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
          WHERE n.nspname IN ('public', 'capture') AND c.relowner = r.oid) AS owner,
       pg_has_role(r.oid, d.datdba, 'MEMBER') OR EXISTS (
         SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
          WHERE n.nspname IN ('public', 'capture') AND pg_has_role(r.oid, c.relowner, 'MEMBER')) AS member_of_owner,
       EXISTS (
         SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
          WHERE n.nspname = 'capture' AND c.relname = 'captured_row'
            AND has_table_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')) AS captured_rows,
       has_database_privilege(r.oid, d.oid, 'TEMP') AS temporary_tables,
       has_schema_privilege(r.oid, 'public', 'CREATE') AS creates_tables
  FROM pg_roles AS r, pg_database AS d
 WHERE r.rolname = current_user AND d.datname = current_database()
"""
_REASONS: Final = {
    "superuser": "it is a superuser",
    "creates_roles": "it may create roles",
    "replication": "it may replicate or bypass row security",
    "owner": "it owns the database or a table in it",
    "member_of_owner": "it is a member of the owner",
    "captured_rows": "it has rights on the captured rows",
    "temporary_tables": "it may create temporary tables",
    "creates_tables": "it may create tables",
}


class PrivilegedRoleError(Exception):
    """The service's role could switch the capture off or read around it; the message is one line."""


async def refuse_privileged_role(connection: asyncpg.Connection[Any]) -> None:
    """Check the role of the connection at the start of the service.

    Raises:
        PrivilegedRoleError: superuser, owner, member of the owner, or rights the service must not have.
    """
    row = await connection.fetchrow(_PRIVILEGES)
    role = await connection.fetchval("SELECT current_user")
    found = [reason for key, reason in _REASONS.items() if row is None or row[key]]
    if found:
        raise PrivilegedRoleError(f"the service must not run as the database role {role}: {found[0]}")
