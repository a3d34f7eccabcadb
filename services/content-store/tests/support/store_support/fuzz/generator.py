"""Random calls for the fuzz run: maps, commands and how a call is sent. Everything comes from one seeded generator."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Literal

from content_store.datahandler.hooks import DataHandlerHook
from remit_contracts.calls import Cmdmap, Datamap, Operation
from remit_contracts.scope import EffectiveAssignmentScope

from store_support.calls import ADMIN
from store_support.fuzz.hooks import random_hook
from store_support.fuzz.oracle import Snapshot
from store_support.fuzz.seed import COPIES_BRANCHES
from store_support.fuzz.targets import Targets

ODD: tuple[Any, ...] = (
    "+5", "05", "5 ", "-0", -0, "", None, True, 2**63, str(2**63), 1.5, [], [5], {}, {"a": 1}, "tt_content_", "nowhere_5",
    "NEWnever", "a\x00b", -1, "-1", 0,
)  # fmt: skip
FIELDS = {
    "tt_content": ("header", "header", "header", "bodytext", "bodytext", "colPos", "hidden", "image", "categories", "sys_language_uid", "l18n_parent", "pid"),
    "pages": ("title", "title", "title", "slug", "hidden", "media", "categories", "sys_language_uid", "l10n_parent", "doktype"),
    "sys_file_reference": ("title", "title", "uid_foreign", "tablenames", "sys_language_uid", "l10n_parent", "pid"),
    "sys_category": ("title", "items", "parent"),
    "sys_file_metadata": ("title", "title", "description", "file"),
    "sys_redirect": ("target", "source_path"),
}  # fmt: skip
COMMANDS = ("move", "copy", "localize", "copyToLanguage", "delete", "undelete", "inlineLocalizeSynchronize", "discard", "version", "explode")  # fmt: skip
_COMMAND_WEIGHTS = (8, 8, 3, 2, 5, 2, 2, 1, 1, 1)
Way = Literal["apply", "rehearse", "open"]


@dataclass
class GeneratedCall:
    """One call.

    Attributes:
        way: sent at once, rehearsed before (and bound to what was shown), or opened and committed.
        user: uid of the administrator.
        list_limit: entries of its change list.
    """

    scope: EffectiveAssignmentScope | None
    operations: list[Operation] = field(default_factory=list)
    hook: DataHandlerHook | None = None
    way: Way = "apply"
    user: int = ADMIN
    list_limit: int = 50


class Generator:
    """Makes the calls of a run.

    Args:
        seed: of the run.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - reproducible, not secret
        self._odd = 0.0
        # How likely a target lies outside of the scope; each call has its own bent.
        self._outside = 0.0
        self._targets: Targets

    def call(self, snapshot: Snapshot) -> GeneratedCall:
        """The next call on what there is."""
        r = self.random
        self._targets = Targets(r, snapshot)
        self._odd = 0.12 if r.random() < 0.12 else 0.002
        self._outside = r.choice((0.0, 0.0, 0.05, 0.4))
        call = GeneratedCall(self._targets.scope)
        makers = [r.choice((self.datamap, self.datamap, self.cmdmap)) for _ in range(r.choice((1, 1, 2, 3)))]
        call.operations = [make() for make in makers]
        if r.random() < 0.5:
            call.hook = random_hook(r, self._targets, lambda: (self.datamap().datamap, self.cmdmap().cmdmap))
        call.way = r.choices(("apply", "rehearse", "open"), (80, 12, 8))[0]
        call.user = r.choice((ADMIN, ADMIN, COPIES_BRANCHES))
        call.list_limit = 2 if r.random() < 0.05 else 50
        return call

    def uid(self, table: str) -> int:
        """A target."""
        return self._targets.uid(table, outside=self._outside)

    def value(self, table: str, name: str) -> Any:
        """A value for a field: plausible, or odd."""
        r = self.random
        if r.random() < self._odd:
            return r.choice(ODD)
        match name:
            case "sys_language_uid":
                return r.choice((0, 1, 1, "1", -1))
            case "l18n_parent" | "l10n_parent" | "parent":
                return r.choice((0, self.uid(table)))
            case "pid":
                return r.choice((self.uid("pages"), -self.uid(table)))
            case "uid_foreign":
                return self.uid("tt_content")
            case "tablenames":
                return r.choice(("tt_content", "tt_content", "pages"))
            case "file":
                return self.uid("sys_file")
            case "image" | "media":
                uids = [str(self.uid("sys_file_reference")) for _ in range(r.randint(0, 2))]
                return ",".join(r.choice((u, f"sys_file_reference_{u}")) for u in uids)
            case "categories":
                return ",".join(str(self.uid("sys_category")) for _ in range(r.randint(0, 2)))
            case "items":
                return ",".join(f"{t}_{self.uid(t)}" for t in r.sample(("tt_content", "pages"), r.randint(0, 2)))
            case "hidden" | "colPos":
                return r.randint(0, 3)
            case "doktype":
                return r.choice((1, 1, 254))
            case "slug" | "source_path":
                return f"/s{r.randint(0, 99)}"
            case _:
                return f"v{r.randint(0, 99)}"

    def row(self, table: str) -> dict[str, Any]:
        """Some fields; mostly plain ones, so that most entries can be written."""
        names = FIELDS[table]
        count = self.random.choice((1, 1, 2, 3))
        return {name: self.value(table, name) for name in self.random.sample(names, min(count, len(names)))}

    def new_row(self, table: str, number: int) -> dict[str, Any]:
        """A new record, in many cases one that may be created."""
        r = self.random
        row = self.row(table)
        row["pid"] = self.value(table, "pid") if r.random() < 0.3 else self.uid("pages")
        if table == "pages":
            row.setdefault("title", f"New {number}")
        if table == "sys_redirect":
            row |= {"pid": 0, "source_host": "*"}
        if table == "sys_file_reference":
            owner = self.uid("tt_content")
            row |= {"uid_local": 3, "uid_foreign": owner, "tablenames": "tt_content", "fieldname": "image"}
        return row

    def datamap(self) -> Datamap:
        """Updates and new records, sometimes with an inline child."""
        r = self.random
        datamap: dict[str, dict[str, Any]] = {}
        for number in range(r.choice((1, 1, 2, 3))):
            table = self._targets.table()
            if r.random() < (0.35 if self._targets.may_create(table) else 0.03):
                datamap.setdefault(table, {})[f"NEW{number}"] = self.new_row(table, number)
            else:
                datamap.setdefault(table, {})[str(self.uid(table))] = self.row(table)
        if r.random() < 0.15:
            owner = self.uid("tt_content")
            datamap.setdefault("tt_content", {})[str(owner)] = {"image": r.choice(("NEWref", "50,NEWref", "51,NEWref"))}
            datamap.setdefault("sys_file_reference", {})["NEWref"] = {"pid": self.uid("pages"), "uid_local": 3}
        return Datamap(datamap=datamap)

    def cmdmap(self) -> Cmdmap:
        """One or two commands."""
        r = self.random
        cmdmap: dict[str, dict[str, Any]] = {}
        for _ in range(r.choice((1, 1, 2))):
            table = self._targets.table()
            weights = _COMMAND_WEIGHTS if self._targets.may_create(table) else (1, 1, 3, 2, 8, 2, 2, 1, 1, 1)
            name = r.choices(COMMANDS, weights)[0]
            uid = self._targets.deleted(table) if name == "undelete" and r.random() < 0.8 else self.uid(table)
            cmdmap.setdefault(table, {})[str(uid)] = {name: self.command_value(table, name)}
        return Cmdmap(cmdmap=cmdmap)

    def command_value(self, table: str, command: str) -> Any:
        """A value for a command: plausible, or odd."""
        r = self.random
        if r.random() < self._odd:
            return r.choice(ODD)
        if command in ("move", "copy"):
            target = r.choice((self.uid("pages"), self.uid("pages"), -self.uid(table)))
            update = r.choice(({}, self.row(table)))
            return r.choice((target, target, str(target), {"action": "paste", "target": target, "update": update}))
        if command == "inlineLocalizeSynchronize":
            return {
                "field": r.choice(("image", "media")),
                "language": 1,
                "action": r.choice(("localize", "synchronize")),
            }
        if command == "version":
            return r.choice(({"action": "swap", "swapWith": self.uid(table)}, {"action": "new"}, 1))
        return 1
