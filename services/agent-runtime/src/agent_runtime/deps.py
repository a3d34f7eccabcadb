"""Puts the parts of a process together; the API and the worker are the same program."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from service_kit.auth import AssertionSigner, load_signing_key
from service_kit.client import ServiceClient
from service_kit.database import Database
from service_kit.outbox import OutboxWaker
from service_kit.texts import Texts

from agent_runtime.approvals.cards import CardReader
from agent_runtime.approvals.preparation import TurnPreparer
from agent_runtime.approvals.service import ApprovalService
from agent_runtime.clients.store import STORE, StoreClient
from agent_runtime.configurations.models import Configuration
from agent_runtime.configurations.registry import ConfigurationRegistry
from agent_runtime.loop.execution import CallExecutor
from agent_runtime.loop.segment import ModelSource, SegmentRunner
from agent_runtime.loop.settling import Settling
from agent_runtime.loop.turns import TurnRunner
from agent_runtime.loop.write_calls import WriteCalls
from agent_runtime.models.factory import build_model
from agent_runtime.models.port import Model
from agent_runtime.rules.assignment_scope import AssignmentScopeRule
from agent_runtime.rules.contracts import InvocationRule
from agent_runtime.rules.draft_workspace import DraftWorkspaceRule
from agent_runtime.rules.engine import RuleEngine, installed_rules
from agent_runtime.runs.access import RunAccess
from agent_runtime.runs.envelope import StateCipher
from agent_runtime.runs.journal import RunJournal
from agent_runtime.runs.service import RunService
from agent_runtime.settings import SERVICE, RuntimeSettings
from agent_runtime.tools.gate import ToolGate
from agent_runtime.tools.registry import ToolRegistry, load_registry

RUN_CHANNEL = "remit_runs"


class ModelShelf:
    """Models by what a configuration says; made once, so that a start finds out what is missing."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str | None], Model] = {}

    def __call__(self, configuration: Configuration) -> Model:
        """The model of a configuration.

        Raises:
            ModelNotConfigured: names the variable or the extra that is missing.
        """
        key = (configuration.model, configuration.base_url)
        if key not in self._made:
            self._made[key] = build_model(*key)
        return self._made[key]

    async def close(self) -> None:
        """Close what was made."""
        while self._made:
            await self._made.popitem()[1].close()


@dataclass
class Runtime:
    """The parts of one process."""

    settings: RuntimeSettings
    database: Database
    store: StoreClient
    journal: RunJournal
    configurations: ConfigurationRegistry
    registry: ToolRegistry
    gate: ToolGate
    runs: RunService
    approvals: ApprovalService
    segments: SegmentRunner
    models: ModelSource
    wakers: tuple[OutboxWaker, ...]
    identity: str

    async def start(self) -> None:
        """Begin to send wake-ups."""
        for waker in self.wakers:
            await waker.start()

    async def stop(self) -> None:
        """Give back connections."""
        for waker in self.wakers:
            await waker.stop()
        if isinstance(self.models, ModelShelf):
            await self.models.close()
        await self.store.client.close()
        await self.database.close()


def process_identity() -> str:
    """Names this process in a lease, at most 64 characters."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}"


def build_runtime(
    settings: RuntimeSettings,
    *,
    registry: ToolRegistry | None = None,
    rules: list[InvocationRule] | None = None,
    models: ModelSource | None = None,
    configurations: ConfigurationRegistry | None = None,
) -> Runtime:
    """Everything a process needs, from its settings; the rest is for tests."""
    url = settings.database_url.get_secret_value()
    database = Database(
        url,
        application_name=SERVICE,
        pool_size=settings.database_pool_size,
        connect_timeout=settings.database_connect_timeout,
    )
    texts = Texts(["agent_runtime"])
    store = StoreClient(_store_client(settings), settings.call_timeout, texts)
    wakers = (OutboxWaker(url), OutboxWaker(url, RUN_CHANNEL))
    cipher = StateCipher.from_text(settings.state_key.get_secret_value())
    journal = RunJournal(database, cipher, *wakers)
    configurations = configurations or ConfigurationRegistry(settings.configurations_file)
    registry = registry or load_registry()
    gate = ToolGate(registry, settings.disabled_tools)
    asked: list[InvocationRule] = [DraftWorkspaceRule(), AssignmentScopeRule(store)]
    asked = rules if rules is not None else [*asked, *installed_rules()]
    preparer = TurnPreparer(store, registry, gate, RuleEngine(asked), texts)
    access = RunAccess(store, configurations)
    cards = CardReader(journal, store, configurations, registry, texts)
    models = models or ModelShelf()
    identity = process_identity()
    return Runtime(
        settings=settings,
        database=database,
        store=store,
        journal=journal,
        configurations=configurations,
        registry=registry,
        gate=gate,
        runs=RunService(
            journal, configurations, registry, access, cards, settings.privacy_level, settings.max_steps_page
        ),
        approvals=ApprovalService(
            journal, configurations, access, cards, preparer, f"decision:{identity}", settings.lease_seconds
        ),
        segments=_segments(settings, journal, store, preparer, configurations, gate, models),
        models=models,
        wakers=wakers,
        identity=identity,
    )


def _store_client(settings: RuntimeSettings) -> ServiceClient:
    pem = settings.signing_key.get_secret_value() if settings.signing_key else None
    signer = AssertionSigner(SERVICE, load_signing_key(pem, settings.signing_key_file))
    return ServiceClient(STORE, settings.content_store_url, signer, timeout=settings.read_timeout)


def _segments(
    settings: RuntimeSettings,
    journal: RunJournal,
    store: StoreClient,
    preparer: TurnPreparer,
    configurations: ConfigurationRegistry,
    gate: ToolGate,
    models: ModelSource,
) -> SegmentRunner:
    settling = Settling(journal, settings.requeue_limit, settings.backoff_base, settings.backoff_limit)
    calls = WriteCalls(journal, store, settings.lease_seconds, settings.store_patience)
    executor = CallExecutor(
        preparer,
        store,
        calls,
        settings.max_content_bytes,
        settings.max_artifact_bytes,
        settings.remote_calls_per_segment,
    )
    turns = TurnRunner(journal, preparer, executor, settling, settings.lease_seconds)
    return SegmentRunner(journal, configurations, gate, models, turns, executor, settling, settings.lease_seconds)


def check_models(runtime: Runtime) -> None:
    """Every configured model can be made, or the start stops here.

    Raises:
        ModelNotConfigured: the first that cannot, with what is missing.
    """
    for configuration in runtime.configurations.all():
        runtime.models(configuration)
