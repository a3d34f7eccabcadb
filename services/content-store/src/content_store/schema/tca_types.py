"""Which database columns a described table has (pure): by control section and by field type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from content_store.schema.model import MM_COLUMNS, VERSION_COLUMNS, DbColumn

if TYPE_CHECKING:
    from content_store.schema.model import Column, TableSchema

_SHORT_TEXT = 255
_CATEGORY_MM = "sys_category_record_mm"
PERMISSION_COLUMNS = ("perms_userid", "perms_groupid", "perms_user", "perms_group", "perms_everybody")
# A plain integer by reference: one target table, one value.
_SINGLE_RELATIONSHIPS = ("oneToOne", "manyToOne")


def _int(name: str, default: int | None = 0, *, nullable: bool = False) -> DbColumn:
    return DbColumn(name, "int", default, nullable)


def _string(name: str, length: int | None = _SHORT_TEXT, default: str = "") -> DbColumn:
    return DbColumn(name, "string", default, False, length)


def _text(name: str) -> DbColumn:
    return DbColumn(name, "text", None, True)


def derive_db_columns(name: str, table: Mapping[str, Any]) -> dict[str, DbColumn]:
    """All columns of a table described by ``{ctrl, columns}``.

    Returns:
        Column name -> column: system columns first, then the fields in their order. Fields without storage
        (``none``, a ``passthrough`` or ``user`` without a default) have none.
    """
    columns = _system_columns(name, table.get("ctrl", {}))
    for field_name, data in table.get("columns", {}).items():
        if field_name in columns:
            continue
        column = _field_column(field_name, data.get("config", {}))
        if column is not None:
            columns[field_name] = column
    return columns


def _system_columns(name: str, ctrl: Mapping[str, Any]) -> dict[str, DbColumn]:
    columns = {"uid": _int("uid", None), "pid": _int("pid")}
    for key in ("tstamp", "crdate", "delete", "sortby", "editlock", "origUid"):
        if ctrl.get(key):
            columns[ctrl[key]] = _int(ctrl[key])
    enable = ctrl.get("enablecolumns") or {}
    for key in ("disabled", "starttime", "endtime"):
        if enable.get(key):
            columns[enable[key]] = _int(enable[key])
    if enable.get("fe_group"):
        columns[enable["fe_group"]] = _string(enable["fe_group"], default="0")
    if ctrl.get("descriptionColumn"):
        columns[ctrl["descriptionColumn"]] = _text(ctrl["descriptionColumn"])
    columns.update(_language_columns(ctrl))
    if ctrl.get("versioningWS"):
        columns.update({c: _int(c) for c in VERSION_COLUMNS})
    if name == "pages":
        columns.update({c: _int(c) for c in PERMISSION_COLUMNS})
    return columns


def _language_columns(ctrl: Mapping[str, Any]) -> dict[str, DbColumn]:
    if not ctrl.get("languageField"):
        return {}
    names = [ctrl[k] for k in ("languageField", "transOrigPointerField", "translationSource") if ctrl.get(k)]
    columns = {name: _int(name) for name in names}
    columns["l10n_state"] = _text("l10n_state")
    if ctrl.get("transOrigDiffSourceField"):
        diff_source = str(ctrl["transOrigDiffSourceField"])
        columns[diff_source] = DbColumn(diff_source, "blob", None, True)
    return columns


def _field_column(name: str, config: Mapping[str, Any]) -> DbColumn | None:
    kind = config.get("type")
    if kind in ("check", "language", "file"):
        return _int(name, _int_default(config))
    if kind in ("text", "flex", "imageManipulation", "slug", "folder"):
        return _text(name)
    if kind == "json":
        return DbColumn(name, "json", None, True)
    if kind == "input":
        return _input_column(name, config)
    if kind in ("email", "link", "password", "color", "country"):
        return _nullable(_string(name, 1024 if kind in ("link", "password") else 320), config)
    if kind == "uuid":
        return _string(name, 36)
    if kind == "number":
        return _number_column(name, config)
    if kind == "datetime":
        return _datetime_column(name, config)
    if kind in ("select", "radio", "group", "inline", "category"):
        return _choice_column(name, config)
    if kind in ("passthrough", "user") and "default" in config:
        return _int(name, _int_default(config)) if isinstance(config["default"], int) else _string(name)
    return None


def _int_default(config: Mapping[str, Any]) -> int:
    try:
        return int(config.get("default") or 0)
    except (TypeError, ValueError):
        return 0


def _nullable(column: DbColumn, config: Mapping[str, Any]) -> DbColumn:
    if not config.get("nullable"):
        return column
    return DbColumn(column.name, column.type, config.get("default"), True, column.length)


def _input_column(name: str, config: Mapping[str, Any]) -> DbColumn:
    limit = int(config.get("max") or 0)
    column = _string(name) if 0 < limit <= _SHORT_TEXT else DbColumn(name, "text", "", False)
    if isinstance(config.get("default"), str):
        column = DbColumn(name, column.type, config["default"], False, column.length)
    return _nullable(column, config)


def _number_column(name: str, config: Mapping[str, Any]) -> DbColumn:
    if config.get("format") == "decimal":
        return _nullable(DbColumn(name, "decimal", "0.00", False), config)
    return _nullable(_int(name, _int_default(config)), config)


def _datetime_column(name: str, config: Mapping[str, Any]) -> DbColumn:
    native = config.get("dbType")
    if native in ("datetime", "date", "time"):
        return DbColumn(name, native, None, True)
    return _nullable(_int(name, _int_default(config)), config)


def _choice_column(name: str, config: Mapping[str, Any]) -> DbColumn:
    kind = config.get("type")
    if config.get("MM") or _is_category_mm(config):
        return _int(name)
    if kind == "inline":
        return _int(name) if config.get("foreign_field") else _string(name, None)
    if kind == "category" or (kind == "group" and _single_target(config)):
        return _int(name) if config.get("relationship") in _SINGLE_RELATIONSHIPS else _text(name)
    if kind == "group":
        return _text(name)
    items = config.get("item_values") or []
    # Single choice of integers, or of records with integers as the other items, is kept as a number.
    single = kind == "radio" or config.get("renderType") == "selectSingle"
    computed = bool(config.get("itemsProcFunc")) and not isinstance(config.get("default"), int)
    if single and not computed and not config.get("dbFieldLength"):
        numeric = all(_is_int(v) for v in items) and _is_int(config.get("default", 0))
        if numeric and (items or config.get("foreign_table")):
            return _int(name, _int_default(config))
    if single or config.get("dbFieldLength") or "default" in config:
        return _string(name, config.get("dbFieldLength") or _SHORT_TEXT, str(config.get("default") or ""))
    return _text(name)


def _single_target(config: Mapping[str, Any]) -> bool:
    allowed = str(config.get("allowed", ""))
    return bool(allowed) and allowed != "*" and "," not in allowed


def _is_int(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, str) and value.lstrip("-").isdigit())


def derive_mm_tables(tables: Iterable[TableSchema]) -> dict[str, dict[str, DbColumn]]:
    """Relation tables the fields of the tables name: table name -> columns."""
    found: dict[str, dict[str, DbColumn]] = {}
    for table in tables:
        for column in table.columns.values():
            for config in _configs(column):
                mm = config.get("MM") or (_CATEGORY_MM if _is_category_mm(config) else None)
                if mm and mm not in found:
                    found[str(mm)] = mm_columns()
    return found


def _is_category_mm(config: Mapping[str, Any]) -> bool:
    return config.get("type") == "category" and config.get("relationship", "manyToMany") == "manyToMany"


def _configs(column: Column) -> list[Mapping[str, Any]]:
    """The field's configuration, of a flex form those of its fields."""
    if column.type != "flex":
        return [column.config]
    # The reader of flex forms needs the model, which needs this module.
    from content_store.schema.flex import FlexError, structure_of

    try:
        structure = structure_of(column)
    except FlexError:
        return []
    return [inner.config for _, _, inner in structure.columns()]


def mm_columns() -> dict[str, DbColumn]:
    """Columns of a relation table that can hold several tables and fields."""
    return {c: _string(c) if c in ("tablenames", "fieldname") else _int(c) for c in MM_COLUMNS}
