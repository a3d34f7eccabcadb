"""Reads table files: the built-in ones and those of a site's own folders, into one schema with a hash."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from content_store.schema.enrich import enriched_tables
from content_store.schema.files import SchemaFileError, TableFile, read_table_file
from content_store.schema.model import Schema
from content_store.schema.names import RESERVED_TABLES, is_reserved
from content_store.schema.problems import problem_lines
from content_store.schema.shapes import shape_problems
from content_store.schema.ties import reference_problems, tie_problems

__all__ = ["RESERVED_TABLES", "build_schema", "folder_sources", "load_schema", "read_json", "schema_hash"]

MAX_FILE_BYTES: Final = 1_048_576
_LABEL_KEYS: Final = frozenset({"label", "title", "description", "items"})


@dataclass(frozen=True)
class _Source:
    name: str
    file: TableFile


def load_schema(folders: Iterable[Path] = ()) -> Schema:
    """The schema of the built-in tables and of the JSON files in the folders, read in the order of their names.

    Raises:
        SchemaFileError: with one line per problem of all files.
    """
    return build_schema([*_builtin_sources(), *_folder_sources(folders)])


def build_schema(sources: Sequence[tuple[str, Any]]) -> Schema:
    """A schema from parsed files.

    Args:
        sources: name of the file and its JSON, in order.

    Raises:
        SchemaFileError: with one line per problem of all files.
    """
    read: list[_Source] = []
    problems: list[str] = []
    for name, data in sources:
        try:
            read.append(_Source(name, read_table_file(name, data)))
        except SchemaFileError as error:
            problems += error.problems
    tables, origin, more = _combine(read)
    problems += more
    problems += problem_lines((p for name, table in tables.items() for p in shape_problems(name, table)), origin)
    if problems:
        raise SchemaFileError(problems)
    # Each step reads what the one before found to be right.
    complete = enriched_tables(tables)
    if problems := problem_lines(reference_problems(complete), origin):
        raise SchemaFileError(problems)
    schema = Schema.from_data({"tables": complete, "tables_without_tca": {}})
    if problems := problem_lines(tie_problems(schema), origin):
        raise SchemaFileError(problems)
    return schema


def schema_hash(schema: Schema) -> str:
    """What ``migrate`` stores and the service compares: everything of the schema but its labels."""
    plain = {name: _without_labels(table) for name, table in sorted(schema.source.get("tables", {}).items())}
    text = json.dumps(plain, sort_keys=False, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()


def _without_labels(table: Mapping[str, Any]) -> Mapping[str, Any]:
    columns = {
        field: {
            key: (_without(value, ("items",)) if key == "config" else value)
            for key, value in column.items()
            if key not in _LABEL_KEYS
        }
        for field, column in table["columns"].items()
    }
    return {**_without(table, ("title",)), "columns": columns}


def _without(data: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in keys}


def _builtin_sources() -> list[tuple[str, Any]]:
    folder = files("content_store.schema") / "tables"
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".json")]
    return [(entry.name, json.loads(entry.read_text("utf-8"))) for entry in sorted(found, key=lambda e: e.name)]


def folder_sources(folders: Iterable[Path], problems: list[str]) -> Iterator[tuple[Path, Any]]:
    """The JSON files of folders in order; what cannot be read is added to ``problems``, one line each."""
    for folder in folders:
        if not folder.is_dir():
            problems.append(f"{folder}: is no folder")
            continue
        for path in sorted(folder.glob("*.json")):
            try:
                content = read_json(path)
            except SchemaFileError as error:
                problems += error.problems
                continue
            yield path, content


def _folder_sources(folders: Iterable[Path]) -> list[tuple[str, Any]]:
    problems: list[str] = []
    found = [(str(path), content) for path, content in folder_sources(folders, problems)]
    if problems:
        raise SchemaFileError(problems)
    return found


def read_json(path: Path) -> Any:
    """The JSON of a file.

    Raises:
        SchemaFileError: with place and reason when it cannot be read.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SchemaFileError([f"{path}: is larger than {MAX_FILE_BYTES} bytes"])
        return json.loads(path.read_text("utf-8"), object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise SchemaFileError([f"{path}: line {error.lineno}, column {error.colno}: {error.msg}"]) from error
    except _DuplicateKeyError as error:
        raise SchemaFileError([f"{path}: the key {error.args[0]!r} stands twice in one object"]) from error
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise SchemaFileError([f"{path}: cannot be read ({type(error).__name__})"]) from error


class _DuplicateKeyError(ValueError):
    pass


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKeyError(key)
        found[key] = value
    return found


def _combine(
    read: Sequence[_Source],
) -> tuple[dict[str, dict[str, Any]], dict[tuple[str, ...], str], list[str]]:
    tables: dict[str, dict[str, Any]] = {}
    origin: dict[tuple[str, ...], str] = {}
    problems: list[str] = []
    for source in read:
        name = source.file.table
        if name is None:
            continue
        if (name,) in origin:
            problems.append(
                f'{source.name}: table {name!r} is described in {origin[name,]}; use "extends" to add to it'
            )
        elif is_reserved(name):
            problems.append(f"{source.name}: the name {name!r} is taken by the store itself")
        else:
            tables[name] = source.file.model_dump(exclude_unset=True, exclude={"table", "extends"})
            tables[name].setdefault("ctrl", {})
            origin[name,] = source.name
    for source in read:
        target = source.file.extends
        if target is not None and target not in tables:
            problems.append(f"{source.name}: there is no table {target!r} to extend")
        elif target is not None:
            more = source.file.model_dump(exclude_unset=True, exclude={"table", "extends"})
            _extend(tables[target], more)
            for part, values in more.items():
                if isinstance(values, dict):
                    origin.update({(target, part, str(key)): source.name for key in values})
    return tables, origin, problems


def _extend(table: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        table[key] = {**table.get(key, {}), **value} if isinstance(value, dict) and key != "title" else value
