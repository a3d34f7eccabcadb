"""Who a user is: the row of ``be_users`` with the rights of all its groups merged in (SEMANTICS 21).

Loading takes one statement and nothing is kept between calls: a right taken away, a user disabled or a group changed
counts from the next call on, in every process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from content_store.access.policy import BackendUser, Row
from content_store.access.rules import GroupRow, int_list, language_set, ordered_groups, text_set
from content_store.datahandler.tsconfig import parse_tsconfig
from content_store.schema.ddl import qualified_name
from content_store.workspaces.rules import Workspace

MOUNTS_FROM_GROUPS: Final = 1
FILE_MOUNTS_FROM_GROUPS: Final = 2
#: Parts of a comma separated list that are a uid; anything else is left out before it is cast.
_UIDS: Final = r"^\s*[0-9]{1,18}\s*$"

_USER: Final = (
    "SELECT 'user' AS kind, uid, to_jsonb(u) - 'password' AS data FROM {users} u "
    "WHERE uid = $1 AND deleted = 0 AND disable = 0 AND starttime <= extract(epoch FROM clock_timestamp()) "
    "AND (endtime = 0 OR endtime > extract(epoch FROM clock_timestamp()))"
)
# UNION leaves out groups already found, so groups that contain each other come to an end.
_MEMBERS: Final = (
    "WITH RECURSIVE member(uid) AS ("
    "SELECT part::bigint FROM {users} u, string_to_table(u.usergroup, ',') part "
    "WHERE u.uid = $1 AND part ~ '{uid}' "
    "UNION SELECT part::bigint FROM member m JOIN {groups} g ON g.uid = m.uid, "
    "string_to_table(g.subgroup, ',') part WHERE part ~ '{uid}') "
)
_GROUPS: Final = (
    "SELECT 'group', g.uid, to_jsonb(g) FROM {groups} g JOIN member m ON m.uid = g.uid "
    "WHERE g.deleted = 0 AND g.hidden = 0"
)
_WORKSPACE: Final = (
    "SELECT 'workspace', w.uid, to_jsonb(w) FROM {workspaces} w WHERE w.uid = $2::bigint AND w.deleted = 0"
)
_NO_WORKSPACE: Final = "SELECT 'workspace', 0::bigint, '{}'::jsonb WHERE $2::bigint < 0"


class Queries(Protocol):
    """What reading needs of a connection or a pool of asyncpg."""

    async def fetch(self, query: str, /, *args: Any) -> list[Any]:
        """All rows of a statement."""
        ...


@dataclass(frozen=True)
class LoadedUser:
    """A user with what the same statement read along.

    Attributes:
        user: with merged rights.
        name: ``realName``, else the user name.
        locale: ``en`` or ``de``.
        workspace: the one asked for, ``None`` for the live workspace or where it does not exist.
    """

    user: BackendUser
    name: str = ""
    locale: str = "en"
    workspace: Workspace | None = None


class UserTables:
    """The statement that loads a user, made once for a database schema.

    Args:
        schema_name: database schema of the record tables.
        with_groups: there is a table ``be_groups``.
        with_workspaces: there is a table ``sys_workspace``.
    """

    def __init__(self, schema_name: str = "public", *, with_groups: bool = True, with_workspaces: bool = True) -> None:
        users, groups, workspaces = (
            qualified_name(table, schema_name) for table in ("be_users", "be_groups", "sys_workspace")
        )
        statements = [_USER.format(users=users)]
        members = ""
        if with_groups:
            members = _MEMBERS.format(users=users, groups=groups, uid=_UIDS)
            statements.append(_GROUPS.format(groups=groups))
        # The parameter has to be used, or its type is not known.
        statements.append(_WORKSPACE.format(workspaces=workspaces) if with_workspaces else _NO_WORKSPACE)
        self.statement = members + " UNION ALL ".join(statements)


DEFAULT_TABLES: Final = UserTables()


async def load_user(
    queries: Queries, uid: int, workspace: int = 0, tables: UserTables = DEFAULT_TABLES
) -> LoadedUser | None:
    """The user with the rights of groups and subgroups, in one statement.

    Args:
        queries: connection or pool.
        uid: of the row in ``be_users``.
        workspace: to read along, 0 for none.
        tables: where users and groups are.

    Returns:
        ``None`` when there is no such user, or it is deleted, disabled or outside of its dates.
    """
    user_row: Row | None = None
    groups: dict[int, GroupRow] = {}
    found_workspace: Workspace | None = None
    for record in await queries.fetch(tables.statement, uid, workspace):
        data = record["data"] if isinstance(record["data"], dict) else json.loads(record["data"])
        if record["kind"] == "user":
            user_row = data
        elif record["kind"] == "group":
            groups[record["uid"]] = GroupRow(record["uid"], data, int_list(data.get("subgroup")))
        else:
            found_workspace = Workspace.from_row(data)
    if user_row is None:
        return None
    return LoadedUser(
        user=merge_user(user_row, groups),
        name=str(user_row.get("realName") or user_row.get("username") or ""),
        locale=str(user_row.get("lang") or "en").split("_")[0].split("-")[0],
        workspace=found_workspace,
    )


def merge_user(row: Row, groups: Mapping[int, GroupRow]) -> BackendUser:
    """The user with the rights of its groups: lists are joined, mounts are taken over where ``options`` says so.

    Args:
        row: of ``be_users``.
        groups: every group that can be reached from the user's.
    """
    order = ordered_groups(int_list(row.get("usergroup")), groups)
    rows = [groups[uid].values for uid in order]
    options = _int(row.get("options"), 3)
    return BackendUser(
        uid=int(row["uid"]),
        username=str(row.get("username") or ""),
        admin=bool(_int(row.get("admin"))),
        groups=order,
        workspace_perms=_int(row.get("workspace_perms")) | _any_bits(rows, "workspace_perms"),
        allowed_languages=_joined(language_set, [row, *rows], "allowed_languages"),
        tables_select=_joined(text_set, rows, "tables_select"),
        tables_modify=_joined(text_set, rows, "tables_modify"),
        non_exclude_fields=_joined(text_set, rows, "non_exclude_fields"),
        explicit_allow=_joined(text_set, rows, "explicit_allowdeny"),
        page_types=_joined(text_set, rows, "pagetypes_select"),
        webmounts=_mounts(row, rows if options & MOUNTS_FROM_GROUPS else [], "db_mountpoints"),
        filemounts=_mounts(row, rows if options & FILE_MOUNTS_FROM_GROUPS else [], "file_mountpoints"),
        uc=_settings(row.get("uc")),
        # The nearer a group is to the user the later it speaks, and the user itself speaks last.
        tsconfig=_merged_tsconfig([*(values.get("TSconfig") for values in reversed(rows)), row.get("TSconfig")]),
    )


def _joined(read: Any, rows: Sequence[Row], name: str) -> Any:
    return frozenset().union(*(read(row.get(name)) for row in rows)) if rows else frozenset()


def _mounts(row: Row, groups: Sequence[Row], name: str) -> tuple[int, ...]:
    uids = [*int_list(row.get(name)), *(uid for group in groups for uid in int_list(group.get(name)))]
    return tuple(dict.fromkeys(uids))


def _any_bits(rows: Sequence[Row], name: str) -> int:
    bits = 0
    for row in rows:
        bits |= _int(row.get(name))
    return bits


def _int(value: Any, default: int = 0) -> int:
    try:
        return int(value) if value is not None else default
    except (TypeError, ValueError, OverflowError):
        return default


def _settings(value: Any) -> Mapping[str, Any] | None:
    """User settings stored as JSON text; settings in any other form count as none."""
    if isinstance(value, Mapping):
        return value
    try:
        read = json.loads(value) if isinstance(value, str) and value else None
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def _merged_tsconfig(texts: Sequence[Any]) -> Mapping[str, str]:
    merged: dict[str, str] = {}
    for text in texts:
        merged.update(parse_tsconfig(str(text or "")))
    return merged
