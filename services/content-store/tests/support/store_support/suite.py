"""Reads a conformance suite: files of cases, each with rows before, steps, and rows after."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from content_store.datahandler.result import ProcessResult

_MARK: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(\+[0-9])?\}")
_FORMAT: Final = "typo3-datascenario-conformance/1"

RowsOf = Callable[[str], Awaitable[list[dict[str, Any]]]]


@dataclass(frozen=True)
class SuiteCase:
    """One case of one group."""

    id: str
    group: str
    mode: str
    file: Path
    data: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class SuiteGroup:
    """One file: schema and rows that its cases share."""

    name: str
    schema: Mapping[str, Any] = field(repr=False)
    initial: Mapping[str, Any] = field(repr=False)
    cases: tuple[SuiteCase, ...] = field(repr=False)


def suite_folder(root: Path) -> Path:
    """Where the suite lies: ``SUITE``, else ``suite`` in ``REMIT_CONFORMANCE``, by default beside the repository."""
    if named := os.environ.get("SUITE"):
        return Path(named)
    return Path(os.environ.get("REMIT_CONFORMANCE") or root / "../shared/conformance") / "suite"


def wanted_modes() -> frozenset[str]:
    """Modes to run: the list in ``MODES``, by default ``Modify``."""
    return frozenset(m.strip() for m in (os.environ.get("MODES") or "Modify").split(",") if m.strip())


def read_suite(folder: Path, modes: frozenset[str]) -> list[SuiteGroup]:
    """All groups of the wanted modes, in the order of their file names."""
    groups = []
    for file in sorted(folder.glob("*.*.json")):
        group, _, mode = file.stem.rpartition(".")
        if mode not in modes:
            continue
        data = json.loads(file.read_text(encoding="utf-8"))
        if data.get("format") != _FORMAT:
            raise ValueError(f"{file.name} is not of the format {_FORMAT}")
        cases = tuple(SuiteCase(case["id"], group, mode, file, case) for case in data["cases"])
        groups.append(SuiteGroup(file.stem, data["schema"], data["initial"], cases))
    return groups


class References:
    """Ids known only while a case runs: fills ``{name}``, ``-{name}`` and ``{name+1}`` in keys and values."""

    def __init__(self, case: Mapping[str, Any], rows_of: RowsOf) -> None:
        self._named = case.get("refs") or {}
        self._rows_of = rows_of
        self.results: dict[int, ProcessResult] = {}

    async def fill(self, value: Any, workspace: int) -> Any:
        """The value with all marks filled; a text that is nothing but a mark becomes a number."""
        if isinstance(value, list):
            return [await self.fill(item, workspace) for item in value]
        if isinstance(value, dict):
            return {await self.fill(k, workspace): await self.fill(v, workspace) for k, v in value.items()}
        if not isinstance(value, str) or not _MARK.search(value):
            return value
        whole = _MARK.fullmatch(value.removeprefix("-"))
        if whole is not None:
            found = await self._value(whole, workspace)
            return -found if value.startswith("-") and isinstance(found, int) else found
        parts, end = [], 0
        for mark in _MARK.finditer(value):
            parts += [value[end : mark.start()], str(await self._value(mark, workspace))]
            end = mark.end()
        return "".join(parts) + value[end:]

    async def _value(self, mark: re.Match[str], workspace: int) -> int | str:
        name, plus = mark.group(1), mark.group(2)
        if name == "uuid4":
            return str(uuid.uuid4())
        number = await self._lookup(self._named[name], workspace)
        return number + int(plus) if plus else number

    async def _lookup(self, reference: Mapping[str, Any], workspace: int) -> int:
        kind = reference["from"]
        source = int(await self.fill(reference.get("source", 0), workspace) or 0)
        if kind == "workspace_version_of":
            return await self._version(reference["table"], source, workspace)
        result = self.results[reference["step"]]
        if kind == "substNEWwithIDs":
            return result.substNEWwithIDs[reference["placeholder"]]
        maps = {
            "copyMappingArray": result.copyMappingArray,
            "copyMappingArray_merged": result.copyMappingArray_merged,
            "autoVersionIdMap": result.autoVersionIdMap,
        }
        return maps[kind][reference["table"]][source]

    async def _version(self, table: str, source: int, workspace: int) -> int:
        rows = [row for row in await self._rows_of(table) if not row.get("deleted")]
        for row in rows:
            if row["t3ver_oid"] == source and row["t3ver_wsid"] == workspace:
                return int(row["uid"])
        if any(r["uid"] == source and r["t3ver_wsid"] == workspace and r["t3ver_state"] == 1 for r in rows):
            return source
        raise LookupError(f"{table}:{source} has no version in workspace {workspace}")
