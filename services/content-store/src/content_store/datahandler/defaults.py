"""Values of a new record that nobody submitted (SEMANTICS 3, 21)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from content_store.datahandler.tsconfig import record_defaults

if TYPE_CHECKING:
    from content_store.datahandler.run import RunContext
    from content_store.schema.model import TableSchema

_USER_BITS: Final = 31
_GROUP_BITS: Final = 27
_PERMISSION_BITS: Final = {"show": 1, "editpage": 2, "deletepage": 4, "newpage": 8, "editcontent": 16}


def schema_defaults(table: TableSchema) -> dict[str, Any]:
    """Defaults the fields' descriptions name; NULL only where it may be stored."""
    values: dict[str, Any] = {}
    for column in table.columns.values():
        if "default" not in column.config or column.name not in table.db_columns:
            continue
        default = column.config["default"]
        if default is None and not table.db_columns[column.name].nullable:
            continue
        values[column.name] = default
    return values


async def new_record_defaults(
    ctx: RunContext, table: TableSchema, page: int, submitted: Mapping[str, Any]
) -> dict[str, Any]:
    """Defaults in their order, weakest first: fields, the user's TSconfig, the page's; pages also get their rights.

    Args:
        ctx: of the run.
        table: of the new record.
        page: it will lie on.
        submitted: names the record type, where it does.
    """
    values = schema_defaults(table)
    type_field = table.type_field
    record_type = submitted.get(type_field, values.get(type_field)) if type_field else None
    for settings in (ctx.policy.user.tsconfig or {}, await ctx.tsconfig(page)):
        wanted = record_defaults(settings, table.name, None if record_type is None else str(record_type))
        values.update({name: value for name, value in wanted.items() if name in table.columns})
    if table.name == "pages":
        values.update(await page_rights(ctx, page))
    return values


async def page_rights(ctx: RunContext, parent: int) -> dict[str, Any]:
    """Owner, group and bits of a new page: the user, the user's first group, and what TSconfig says."""
    user = ctx.policy.user
    rights: dict[str, Any] = {
        "perms_userid": user.uid,
        "perms_groupid": user.groups[0] if user.groups else 0,
        "perms_user": _USER_BITS,
        "perms_group": _GROUP_BITS,
        "perms_everybody": 0,
    }
    settings = await ctx.tsconfig(parent)
    above = await ctx.reader.stored("pages", parent) if parent > 0 else None
    for key, column in (
        ("userid", "perms_userid"),
        ("groupid", "perms_groupid"),
        ("user", "perms_user"),
        ("group", "perms_group"),
        ("everybody", "perms_everybody"),
    ):
        value = settings.get(f"TCEMAIN.permissions.{key}")
        if value is None:
            continue
        if value == "copyFromParent":
            rights[column] = above[column] if above else rights[column]
        elif column.endswith("id"):
            rights[column] = int(value) if value.isascii() and value.isdigit() else rights[column]
        else:
            rights[column] = permission_bits(value)
    return rights


def permission_bits(value: str) -> int:
    """Bits from a number or a list of names (``show, editpage, deletepage, newpage, editcontent``)."""
    if value.isascii() and value.isdigit():
        return int(value) & _USER_BITS
    return sum(bit for name, bit in _PERMISSION_BITS.items() if name in [p.strip() for p in value.split(",")])
