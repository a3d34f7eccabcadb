"""The values of a table file, each on its own (pure): a wrong one is a line for its author, never an error later on."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from content_store.schema.flex import FlexError, parse_structure
from content_store.schema.model import VERSION_COLUMNS
from content_store.schema.problems import Problem
from content_store.schema.values import (
    ANY_MAP,
    CONSTANTS,
    FALLBACK,
    FIELD,
    FLAG,
    FLAGS,
    INTEGER,
    KEYS,
    LENGTH,
    NATURAL,
    NATURALS,
    NUMBER,
    SCALAR,
    SLUG_FIELDS,
    TABLE,
    TEXT,
    TEXT_MAP,
    TEXTS,
    TYPE_FIELD,
    USAGE,
    Rule,
    holds_nul,
    is_integer,
    is_number,
    one_of,
)

#: Set by the store alone: to write them would be to choose a uid, to move, or to make a draft around the rules.
SYSTEM_COLUMNS: Final = frozenset({"uid", "pid", *VERSION_COLUMNS})
#: Keys for which 0, false or nothing do not stand for "left out": they are read as maps wherever they are there.
_NEVER_PLAIN: Final = frozenset({"config", "foreign_match_fields"})
_MOST_CHECKS: Final = 62
_Rules = Mapping[str, Rule]
_CTRL: Final[_Rules] = {
    **dict.fromkeys(
        (
            "label", "tstamp", "crdate", "delete", "sortby", "editlock", "origUid", "languageField",
            "transOrigPointerField", "translationSource", "transOrigDiffSourceField", "descriptionColumn",
        ),
        FIELD,
    ),
    **dict.fromkeys(
        ("versioningWS", "versioningWS_alwaysAllowLiveEdit", "hideAtCopy", "readOnly", "adminOnly", "hideTable"), FLAG
    ),
    **dict.fromkeys(("default_sortby", "label_alt", "copyAfterDuplFields", "useColumnsForDefaultValues"), TEXT),
    "type": TYPE_FIELD,
    "enablecolumns": TEXT_MAP,
    "security": FLAGS,
    "defaultAllowedRecordTypes": TEXTS,
    "prependAtCopy": SCALAR,
    "rootLevel": Rule(lambda v: (is_integer(v) and -1 <= int(v) <= 1) or v is True, "-1, 0 or 1 is expected"),
}  # fmt: skip
_CONFIG: Final[_Rules] = {
    **dict.fromkeys(("max", "min", "maxitems", "minitems"), NATURAL),
    **dict.fromkeys(
        (
            "nullable", "required", "readOnly", "multiple", "enableRichtext", "opacity", "hashed", "prepend_tname",
            "localizeReferencesAtParentLocalization",
        ),
        FLAG,
    ),
    **dict.fromkeys(
        (
            "eval", "renderType", "authMode", "softref", "ds", "selectFieldName", "itemsProcFunc", "format", "allowed",
            "foreign_default_sortby", "foreign_label", "foreign_selector", "MM_opposite_field",
        ),
        TEXT,
    ),
    **dict.fromkeys(("foreign_field", "foreign_sortby", "foreign_table_field"), FIELD),
    **dict.fromkeys(("foreign_table", "MM"), TABLE),
    **dict.fromkeys(("foreign_match_fields", "MM_match_fields"), CONSTANTS),
    "MM_oppositeUsage": USAGE,
    "dbFieldLength": LENGTH,
    "exclusiveKeys": KEYS,
    "behaviour": FLAGS,
    "validation": NATURALS,
    "range": ANY_MAP,
    "generatorOptions": ANY_MAP,
    "filter": ANY_MAP,
    "fallbackCharacter": FALLBACK,
    "dbType": one_of("date", "time", "datetime"),
    "relationship": one_of("oneToOne", "oneToMany", "manyToOne", "manyToMany"),
}  # fmt: skip
_INSIDE: Final[Mapping[str, _Rules]] = {
    "generatorOptions": {
        "fields": SLUG_FIELDS, "fieldSeparator": TEXT, "prefixParentPageSlug": FLAG, "replacements": TEXT_MAP,
    },
    "filter": {"onlyCountries": TEXTS, "excludeCountries": TEXTS},
}  # fmt: skip
_OVERRIDE: Final[_Rules] = {"config": ANY_MAP, "l10n_mode": TEXT, "exclude": FLAG}
_VERSION: Final = Rule(lambda v: is_integer(v) and int(v) in (4, 6, 7), "4, 6 or 7 is expected")
_Found = Iterator[tuple[str, str]]


def shape_problems(name: str, table: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the values of one table as its files describe it, before anything is completed."""
    columns: Mapping[str, Any] = table.get("columns", {})
    ctrl: Mapping[str, Any] = table.get("ctrl", {})
    found = [Problem(name, "ctrl", place, "", text) for place, text in _broken(ctrl, _CTRL)]
    if isinstance(ctrl.get("enablecolumns"), Mapping):
        enable = {key: FIELD for key in ctrl["enablecolumns"]}
        inside = _broken(ctrl["enablecolumns"], enable)
        found += [Problem(name, "ctrl", "enablecolumns", place, text) for place, text in inside]
    for field, column in columns.items():
        if field in SYSTEM_COLUMNS:
            found.append(Problem(name, "columns", field, "", "the store itself writes this column, it can be no field"))
        problems = config_problems(column.get("config", {}))
        found += [Problem(name, "columns", field, f"config.{place}", text) for place, text in problems]
    for column_name, data in table.get("db_columns", {}).items():
        if column_name in SYSTEM_COLUMNS:
            text = "the store itself makes this column"
            found.append(Problem(name, "db_columns", column_name, "", text))
        elif (wrong := _db_default(data)) is not None:
            found.append(Problem(name, "db_columns", column_name, "default", wrong))
    for record_type, changes in table.get("type_columns_overrides", {}).items():
        for place, text in _override_problems(columns, changes):
            found.append(Problem(name, "type_columns_overrides", record_type, place, text))
    return found


def _broken(values: Mapping[str, Any], rules: _Rules) -> _Found:
    """Keys whose value breaks its rule; nothing, an empty text or list, 0 and false leave a key out."""
    for key, value in values.items():
        if holds_nul(value) or holds_nul(key):
            yield key.replace("\x00", ""), "a text holds a NUL character"
        elif (value or key in _NEVER_PLAIN) and key in rules and not (rules[key].holds(value) or value == []):
            yield key, rules[key].expects


def _override_problems(columns: Mapping[str, Any], changes: Mapping[str, Any]) -> _Found:
    for field, change in changes.items():
        broken = list(_broken(change, _OVERRIDE))
        yield from ((f"{field}.{place}", text) for place, text in broken)
        config = change.get("config") or {}
        if broken or field not in columns:
            continue
        before = columns[field].get("config", {})
        if config.get("type", before.get("type")) != before.get("type"):
            yield f"{field}.config.type", "a record type cannot change the type of a field"
            continue
        known = set(config_problems(before))
        for place, text in config_problems({**before, **config}):
            if (place, text) not in known:
                yield f"{field}.config.{place}", text


def config_problems(config: Mapping[str, Any]) -> _Found:
    """What is wrong with the configuration of a field, as place and reason; of a form with that of its fields."""
    kind = config.get("type")
    wrong: set[str] = set()
    for key, text in _broken(config, _CONFIG):
        wrong.add(key)
        yield key, text
    for key, rules in _INSIDE.items():
        if config.get(key) and key not in wrong:
            yield from ((f"{key}.{place}", text) for place, text in _broken(config[key], rules))
    if config.get("range") and "range" not in wrong:
        limit = NUMBER if config.get("format") == "decimal" else INTEGER
        rules = {"lower": limit, "upper": limit} if kind in ("number", "datetime") else {}
        yield from ((f"range.{place}", text) for place, text in _broken(config["range"], rules))
    if kind == "uuid":
        yield from _broken(config, {"version": _VERSION})
    yield from _item_problems(kind, config)
    default = _default_problem(kind, config)
    if default is not None and "max" not in wrong:
        yield "default", default
    if kind == "flex" and "ds" not in wrong:
        yield from _form_problems(str(config.get("ds") or ""))


def _item_problems(kind: Any, config: Mapping[str, Any]) -> _Found:
    for item in config.get("items") or ():
        if isinstance(item, Mapping) and not (is_integer(v := item.get("value", "")) or isinstance(v, str)):
            yield "items", "the value of an item is a text or a whole number"
            break
    values = config.get("item_values")
    if kind == "check" and (values is None or is_integer(values)):
        if int(values or len(config.get("items") or ())) > _MOST_CHECKS:
            yield "items", f"a field holds no more than {_MOST_CHECKS} boxes"
    elif values is not None and not _is_choice(values):
        yield "item_values", "a list of texts and whole numbers is expected"


def _is_choice(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(v, str) or is_integer(v) for v in values)


def _default_problem(kind: Any, config: Mapping[str, Any]) -> str | None:
    value = config.get("default")
    if value is None or value == "":
        return None
    if not SCALAR.holds(value):
        return SCALAR.expects
    decimal = kind == "number" and config.get("format") == "decimal"
    if decimal:
        return None if is_number(value) else NUMBER.expects
    if kind in ("number", "check", "language", "file") or (kind == "datetime" and not config.get("dbType")):
        return None if is_integer(value) or isinstance(value, bool) else INTEGER.expects
    limit = int(config.get("max") or 0) if is_integer(config.get("max")) else 0
    if kind == "input" and limit and len(str(value)) > limit:
        return f"it is longer than max ({limit})"
    return None if kind != "json" else _json_problem(value)


def _json_problem(value: Any) -> str | None:
    try:
        json.loads(str(value))
    except ValueError:
        return "JSON is expected"
    return None


def _form_problems(source: str) -> _Found:
    try:
        structure = parse_structure(source)
    except FlexError:
        yield "ds", "it is no data structure of a form"
        return
    inside = [(f"{sheet}.{field}", column.config) for sheet, field, column in structure.columns()]
    for (sheet, section), containers in structure.sections.items():
        for container, fields in containers.items():
            inside += [(f"{sheet}.{section}.{container}.{f}", column.config) for f, column in fields.items()]
    for place, config in inside:
        if not isinstance(config, Mapping):
            yield f"ds.{place}", "config is a map"
            continue
        yield from ((f"ds.{place}.{key}", text) for key, text in config_problems(config))


def _parses(parse: Callable[[str], Any]) -> Callable[[Any], bool]:
    def holds(value: Any) -> bool:
        try:
            parse(value)
        except (ValueError, TypeError):
            return False
        return True

    return holds


_DB_DEFAULTS: Final[_Rules] = {
    "int": Rule(lambda v: is_integer(v) or isinstance(v, bool), INTEGER.expects),
    "decimal": NUMBER,
    "float": NUMBER,
    "json": Rule(lambda v: isinstance(v, str) and _json_problem(v) is None, "JSON is expected"),
    "datetime": Rule(_parses(dt.datetime.fromisoformat), "a date and time is expected"),
    "date": Rule(_parses(dt.date.fromisoformat), "a date is expected"),
    "time": Rule(_parses(dt.time.fromisoformat), "a time is expected"),
}


def _db_default(data: Mapping[str, Any]) -> str | None:
    default, kind, length = data.get("default"), str(data["type"]), data.get("length")
    if default is None:
        return None
    if holds_nul(default):
        return "a text holds a NUL character"
    rule = _DB_DEFAULTS.get(kind, SCALAR)
    if not rule.holds(default):
        return rule.expects
    if kind == "string" and length and len(str(default)) > length:
        return f"it is longer than the column ({length})"
    return None
