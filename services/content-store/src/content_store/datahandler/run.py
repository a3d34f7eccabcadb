"""State of a run: what all instances share, and what belongs to one of them."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from content_store.datahandler.errors import RunTooDeep
from content_store.datahandler.first_places import FirstPlaces
from content_store.datahandler.history import HistoryCollector
from content_store.datahandler.log import LogAction, LogCollector, LogEntry, LogLevel
from content_store.datahandler.refindex import ReferenceCollector
from content_store.datahandler.relations.mm import MmStore
from content_store.datahandler.sites import Site, SiteLanguage, Sites
from content_store.datahandler.tsconfig import merge_tsconfig

if TYPE_CHECKING:
    from content_store.access.policy import AccessPolicy
    from content_store.datahandler.hooks import DataHandlerHook
    from content_store.datahandler.result import EntryOutcome
    from content_store.datahandler.savepoints import RunSnapshot
    from content_store.records.gateway import RecordGateway
    from content_store.records.overlay import OverlayReader
    from content_store.schema.model import Schema, TableSchema

PasswordHasher = Callable[[str], str]
AfterCommit = Callable[[], Awaitable[None]]
RichTextTransform = Callable[[str], str]


@dataclass(frozen=True)
class HandlerOptions:
    """Settings of a DataHandler.

    Attributes:
        hash_password: makes the stored form of a password field.
        transform_rich_text: applied to submitted rich text (not to copies).
        copy_label: suffix of a copied label; ``{number}`` is filled.
        translate_label: prefix of a localized label; ``{language}`` is filled. TSconfig may say otherwise.
        max_depth: of nested instances.
        savepoint_single_entry: take a savepoint also for a single entry (CALLS 1: none).
        max_unique_attempts: numbers tried to make a value unique.
    """

    hash_password: PasswordHasher | None = None
    transform_rich_text: RichTextTransform | None = None
    copy_label: str = "(copy {number})"
    translate_label: str = "Translate to {language}:"
    max_depth: int = 50
    savepoint_single_entry: bool = False
    max_unique_attempts: int = 100


@dataclass(frozen=True)
class FlushRequest:
    """A wish to flush caches after the commit: a ``group`` (one name) or ``tags``."""

    kind: Literal["group", "tags"]
    names: tuple[str, ...]


class RunContext:
    """What the outermost instance and all nested ones share.

    Attributes:
        gateway: SQL on records.
        reader: rows as the workspace sees them.
        policy: rights of the acting user.
        hooks: in the order they are called.
        workspace: acting workspace, 0 is live.
        now: Unix seconds, the same for the whole run.
        rehearsal: the transaction will be rolled back.
        correlation_scope: shared by the history entries.
        after_commit: callbacks for the time after the commit.
        flush_requests: caches to flush after the commit.
        outcomes: what happened per entry of the outermost instance.
    """

    def __init__(
        self,
        gateway: RecordGateway,
        reader: OverlayReader,
        policy: AccessPolicy,
        hooks: Sequence[DataHandlerHook],
        *,
        sites: Sites,
        options: HandlerOptions,
        workspace: int,
        now: int,
        rehearsal: bool,
        original_user: int = 0,
    ) -> None:
        self.gateway = gateway
        self.reader = reader
        self.policy = policy
        self.hooks = tuple(hooks)
        self.sites = sites
        self.options = options
        self.workspace = workspace
        self.now = now
        self.rehearsal = rehearsal
        self.original_user = original_user
        self.correlation_scope = uuid.uuid4().hex
        self.history = HistoryCollector(policy.user.uid, original_user, self.correlation_scope, workspace)
        self.log = LogCollector(policy.user.uid, workspace)
        self.references = ReferenceCollector()
        self.mm = MmStore(gateway)
        self.places = FirstPlaces(gateway)
        self.after_commit: list[AfterCommit] = []
        self.flush_requests: list[FlushRequest] = []
        self.outcomes: list[EntryOutcome] = []
        self.localized: dict[tuple[str, int, int], int] = {}
        #: Table -> fields copies take along, as far as they were asked for.
        self.taken_along: dict[str, frozenset[str]] = {}
        self.depth = 0
        # Everything gets a savepoint: an entry is repeated that was refused after it had written.
        self.careful = False
        #: How many entries around the one at work have a savepoint.
        self.savepoints = 0
        self._tsconfig: dict[int, dict[str, str]] = {}

    @property
    def schema(self) -> Schema:
        """Tables and fields."""
        return self.gateway.schema

    def table(self, name: str) -> TableSchema:
        """One table."""
        return self.gateway.schema.tables[name]

    def defer(self, callback: AfterCommit) -> None:
        """Has a callback run after the commit; in a rehearsal it is dropped."""
        if not self.rehearsal:
            self.after_commit.append(callback)

    def request_cache_flush(self, *, group: str | None = None, tags: Iterable[str] = ()) -> None:
        """Asks for caches to be flushed after the commit, by group or by tags."""
        if self.rehearsal:
            return
        if group is not None:
            self.flush_requests.append(FlushRequest("group", (group,)))
        names = tuple(tags)
        if names:
            self.flush_requests.append(FlushRequest("tags", names))

    async def site_of(self, page: int) -> Site | None:
        """The site the page lies in."""
        return self.sites.of_rootline(await self.reader.rootline(page))

    async def language_on(self, page: int, language: int) -> SiteLanguage | None:
        """The language as the page's site (or any, where there is none) knows it."""
        return self.sites.language(await self.site_of(page), language)

    async def tsconfig(self, page: int) -> Mapping[str, str]:
        """Settings that hold on the page for the acting user."""
        if page not in self._tsconfig:
            rootline = await self.reader.rootline(page) if page > 0 else []
            texts = [row.get("TSconfig") for row in reversed(rootline)]
            self._tsconfig[page] = merge_tsconfig(texts, self.policy.user.tsconfig)
        return self._tsconfig[page]

    def forget_settings(self) -> None:
        """Settings may have changed (a page's TSconfig was written, a savepoint was rolled back)."""
        self._tsconfig.clear()


@dataclass
class RemapTask:
    """A relation that waits until all rows of the instance are written."""

    table: str
    record_id: str
    field: str
    tokens: list[str]
    kind: Literal["relation", "value"]
    status: Literal["new", "update"]
    #: The field was left out of the row because it held placeholders.
    write_value: bool
    #: Sheet and field inside a flex form.
    inside: tuple[str, str] | None = None


@dataclass
class WaitingOperation:
    """``after_database_operations`` of a row with waiting relations."""

    status: Literal["new", "update"]
    table: str
    record_id: str
    uid: int
    fields: dict[str, Any]


RecordMap = dict[str, dict[int, int]]


def _record_map() -> RecordMap:
    return defaultdict(dict)


@dataclass
class HandlerRun:
    """One instance: its maps, what it made, and what still waits.

    Attributes:
        ctx: shared with all other instances of the run.
        datamap: table -> uid or placeholder -> field -> value, in order.
        cmdmap: table -> uid -> command -> value, in order.
        placeholders: placeholder -> (table, uid).
        copied: table -> source -> copy, of the command at work.
        copied_merged: the same of all commands.
        auto_versions: table -> live uid -> version.
        copy_mode: values come from a copy or localization (no rich text transformation, no title prefix again).
    """

    ctx: RunContext
    datamap: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    cmdmap: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    parent: HandlerRun | None = None
    placeholders: dict[str, tuple[str, int]] = field(default_factory=dict)
    copied: RecordMap = field(default_factory=_record_map)
    copied_merged: RecordMap = field(default_factory=_record_map)
    auto_versions: RecordMap = field(default_factory=_record_map)
    tasks: list[RemapTask] = field(default_factory=list)
    waiting: list[WaitingOperation] = field(default_factory=list)
    #: Copied records and the fields whose targets may have been copied too (exchanged at the end of the commands).
    exchange: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    #: Inline children of copied pages that move to the copy: (child table, child uid) -> source page.
    page_children: dict[tuple[str, int], int] = field(default_factory=dict)
    paste_datamap: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    suggested_uids: frozenset[tuple[str, int]] = frozenset()
    #: Entry -> submitted fields its original decides, with the values given.
    bound: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    #: Fields of each entry as it was submitted: (table, uid or placeholder) -> names.
    submitted: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    #: Set while the synchronization has written something: what to go back to.
    before_sync: RunSnapshot | None = None
    copy_mode: bool = False
    #: Outcomes of the entries of a nested instance.
    results: list[EntryOutcome] = field(default_factory=list)

    @property
    def outermost(self) -> bool:
        """Is no other instance around this one?"""
        return self.parent is None

    @property
    def root(self) -> HandlerRun:
        """The outermost instance."""
        run = self
        while run.parent is not None:
            run = run.parent
        return run

    def nested(
        self, datamap: dict[str, dict[str, dict[str, Any]]] | None = None, *, copying: bool = False
    ) -> HandlerRun:
        """An instance inside this one.

        Raises:
            RunTooDeep: the limit of nesting is reached.
        """
        depth, run = 0, self
        while run.parent is not None:
            depth, run = depth + 1, run.parent
        if depth + self.ctx.depth >= self.ctx.options.max_depth:
            raise RunTooDeep(f"more than {self.ctx.options.max_depth} nested instances")
        return HandlerRun(self.ctx, datamap or {}, parent=self, copy_mode=copying)

    def uid_of(self, table: str, record_id: str) -> int | None:
        """The uid of a uid or known placeholder of that table."""
        if "NEW" in record_id:
            known = self.placeholders.get(record_id)
            return known[1] if known is not None and known[0] == table else None
        return int(record_id)

    def note_copy(self, table: str, source: int, copy: int) -> None:
        """A record was copied or localized by the command at work."""
        self.copied[table][source] = copy
        self.copied_merged[table][source] = copy

    def log_error(
        self,
        action: LogAction,
        table: str,
        uid: int,
        message: str,
        data: Mapping[str, Any] | None = None,
        *,
        code: str = "",
        level: LogLevel = LogLevel.USER_ERROR,
        page: int = -1,
    ) -> None:
        """Logs an error or warning and adds its text to the error log."""
        self.ctx.log.add(LogEntry(self.ctx.now, action, level, table, uid, message, data or {}, page, code))
