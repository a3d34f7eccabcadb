"""Random scopes, calls and hooks for the fuzz run. Everything comes from one seeded generator."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from content_store.datahandler.handler import DataHandler
from content_store.datahandler.hooks import DataHandlerHook, Fields, Status
from content_store.datahandler.run import HandlerRun
from remit_contracts.calls import Cmdmap, Datamap, Operation
from remit_contracts.scope import EffectiveAssignmentScope

PAGES = (1, 10, 100, 1000, 11, 2, 20)
ODD: tuple[Any, ...] = (
    "+5", "05", "5 ", "-0", -0, "", None, True, 2**63, str(2**63), 1.5, [], [5], {}, {"a": 1}, "tt_content_", "nowhere_5",
    "NEWnever", "a\x00b", -1, "-1", 0,
)  # fmt: skip
FIELDS = {
    "tt_content": (
        "header",
        "bodytext",
        "colPos",
        "hidden",
        "image",
        "categories",
        "sys_language_uid",
        "l18n_parent",
        "pid",
    ),
    "pages": ("title", "slug", "hidden", "media", "sys_language_uid", "l10n_parent", "doktype"),
    "sys_file_reference": ("title", "uid_foreign", "tablenames", "sys_language_uid", "l10n_parent", "pid"),
    "sys_category": ("title", "items", "parent"),
    "sys_file_metadata": ("title", "file"),
    "sys_redirect": ("target", "source_path"),
}
COMMANDS = ("move", "move", "copy", "copy", "localize", "copyToLanguage", "delete", "delete", "undelete", "inlineLocalizeSynchronize", "explode")  # fmt: skip


class Generator:
    """Makes the calls of a run.

    Args:
        seed: of the run.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - reproducible, not secret
        self.known: dict[str, list[int]] = {}
        self.inside: dict[str, list[int]] = {}

    def uid(self, table: str) -> int:
        """A uid of the table, mostly one that is there, and more often than not one in the scope."""
        if (inside := self.inside.get(table)) and self.random.random() < 0.65:
            return self.random.choice(inside)
        known = self.known.get(table) or [1]
        return self.random.choice(known) if self.random.random() < 0.95 else self.random.randint(1, 9999)

    def table(self) -> str:
        """A table, mostly content and pages."""
        weights = (10, 6, 4, 2, 2, 1)
        return self.random.choices(list(FIELDS), weights)[0]

    def scope(self) -> EffectiveAssignmentScope | None:
        """Any scope, sometimes none."""
        r = self.random
        if r.random() < 0.1:
            return None
        roots = [
            {"page": self.uid("pages"), "depth": r.choice((0, 0, 1, 1, 2, 99))} for _ in range(r.choice((0, 1, 1, 2)))
        ]
        tables = [self.table() for _ in range(r.choice((0, 1, 1, 2)))]
        values: dict[str, Any] = {"pages": roots, "records": [f"{t}:{self.uid(t)}" for t in tables]}
        if r.random() < 0.25:
            values["tables"] = r.sample(list(FIELDS), r.randint(1, 5))
        if r.random() < 0.25:
            values["languages"] = r.sample((-1, 0, 1), r.randint(1, 2))
        return EffectiveAssignmentScope.model_validate(values)

    def value(self, table: str, field: str) -> Any:
        """A value for a field: plausible, or odd."""
        r = self.random
        if r.random() < 0.06:
            return r.choice(ODD)
        match field:
            case "sys_language_uid":
                return r.choice((0, 1, 1, "1", -1))
            case "l18n_parent" | "l10n_parent" | "parent":
                return r.choice((0, self.uid(table)))
            case "pid":
                return r.choice((self.uid("pages"), -self.uid(table)))
            case "uid_foreign":
                return self.uid("tt_content")
            case "tablenames":
                return r.choice(("tt_content", "pages"))
            case "file":
                return self.uid("sys_file")
            case "image" | "media":
                uids = [str(self.uid("sys_file_reference")) for _ in range(r.randint(0, 2))]
                return ",".join(r.choice((u, f"sys_file_reference_{u}")) for u in uids)
            case "categories":
                return str(self.uid("sys_category"))
            case "items":
                return f"tt_content_{self.uid('tt_content')}"
            case "hidden" | "colPos":
                return r.randint(0, 3)
            case "doktype":
                return r.choice((1, 1, 254))
            case _:
                return f"v{r.randint(0, 9)}"

    def row(self, table: str) -> dict[str, Any]:
        """Some fields."""
        fields = self.random.sample(FIELDS[table], self.random.randint(1, min(3, len(FIELDS[table]))))
        return {field: self.value(table, field) for field in fields}

    def datamap(self) -> Datamap:
        """Updates and new records."""
        datamap: dict[str, dict[str, Any]] = {}
        for number in range(self.random.choice((1, 1, 2, 3))):
            table = self.table()
            new = self.random.random() < 0.4
            key = f"NEW{number}" if new else str(self.uid(table))
            row = self.row(table)
            if new:
                row["pid"] = self.value(table, "pid") if self.random.random() < 0.5 else self.uid("pages")
            datamap.setdefault(table, {})[key] = row
        if self.random.random() < 0.15:
            datamap.setdefault("tt_content", {})[str(self.uid("tt_content"))] = {"image": "NEWref"}
            datamap.setdefault("sys_file_reference", {})["NEWref"] = {"pid": self.uid("pages"), "uid_local": 3}
        return Datamap(datamap=datamap)

    def cmdmap(self) -> Cmdmap:
        """One or two commands."""
        cmdmap: dict[str, dict[str, Any]] = {}
        for _ in range(self.random.choice((1, 1, 2))):
            table, command = self.table(), self.random.choice(COMMANDS)
            cmdmap.setdefault(table, {})[str(self.uid(table))] = {command: self.command_value(table, command)}
        return Cmdmap(cmdmap=cmdmap)

    def command_value(self, table: str, command: str) -> Any:
        """A value for a command: plausible, or odd."""
        r = self.random
        if r.random() < 0.06:
            return r.choice(ODD)
        target = r.choice((self.uid("pages"), -self.uid(table)))
        if command in ("move", "copy"):
            update = r.choice(({}, self.row(table)))
            return r.choice((target, target, str(target), {"action": "paste", "target": target, "update": update}))
        if command == "inlineLocalizeSynchronize":
            return {
                "field": r.choice(("image", "media")),
                "language": 1,
                "action": r.choice(("localize", "synchronize")),
            }
        return 1

    def operations(self) -> list[Operation]:
        """Operations of one call."""
        kinds = [
            self.random.choice((self.datamap, self.datamap, self.cmdmap)) for _ in range(self.random.choice((1, 1, 2)))
        ]
        return [make() for make in kinds]

    def hook(self) -> DataHandlerHook | None:
        """An installed hook that writes on its own, or fails, in one of five calls."""
        r = self.random
        if r.random() > 0.2:
            return None
        table = self.table()
        uid, page = self.uid(table), self.uid("pages")
        sql = r.choice(
            (
                f"UPDATE {table} SET pid = {page} WHERE uid = {uid}",
                f"UPDATE tt_content SET header = 'hook' WHERE uid = {self.uid('tt_content')}",
                f"DELETE FROM {table} WHERE uid = {uid}",
                f"INSERT INTO tt_content (pid, header) VALUES ({page}, 'hook')",
                f"UPDATE sys_file_reference SET uid_foreign = {self.uid('tt_content')} WHERE uid = {self.uid('sys_file_reference')}",
                "SELECT count(*) FROM capture_take()",
                "SELECT 1 / 0",
                "ROLLBACK",
            )
        )
        datamap, cmdmap = self.datamap().datamap, self.cmdmap().cmdmap

        async def query(run: HandlerRun) -> None:
            await run.ctx.gateway.connection.execute(sql)

        async def write(run: HandlerRun) -> None:
            await DataHandler.within(run).process(datamap, {})

        async def command(run: HandlerRun) -> None:
            await DataHandler.within(run).process({}, cmdmap)

        async def fail(_run: HandlerRun) -> None:
            raise RuntimeError("hook")

        return _Once(r.choice((query, query, write, command, fail)))


class _Once(DataHandlerHook):
    """Does its work after the first entry or command of a call, never inside of itself."""

    def __init__(self, work: Callable[[HandlerRun], Awaitable[None]]) -> None:
        self._work: Callable[[HandlerRun], Awaitable[None]] | None = work

    async def _do(self, run: HandlerRun) -> None:
        work, self._work = self._work, None
        if work is not None:
            await work(run)

    async def after_database_operations(
        self, run: HandlerRun, status: Status, table: str, record_id: str, uid: int, fields: Fields
    ) -> None:
        await self._do(run)

    async def post_process_command(
        self, run: HandlerRun, command: str, table: str, uid: int, value: Any, paste: Fields | None, results: list[int]
    ) -> None:
        await self._do(run)
