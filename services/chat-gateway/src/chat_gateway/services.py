"""Builds everything the gateway's two programs share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from service_kit.auth import AssertionSigner, load_signing_key
from service_kit.client import ServiceClient
from service_kit.database import Database
from service_kit.texts import Texts

from chat_gateway.access.languages import LanguageTitles
from chat_gateway.access.visibility import VisibilityFilter
from chat_gateway.approvals.service import ApprovalService
from chat_gateway.changes.reader import ConversationChangeReader
from chat_gateway.clients.ports import RuntimePort, StorePort
from chat_gateway.clients.runtime import RuntimeClient
from chat_gateway.clients.store import LoginClient, StoreClient
from chat_gateway.clients.transport import http_transport
from chat_gateway.conversations.service import ConversationService
from chat_gateway.conversations.starts import RunStarter
from chat_gateway.projection.apply import Projector
from chat_gateway.projection.delivery import Delivery
from chat_gateway.settings import PACKAGE, SERVICE, GatewaySettings
from chat_gateway.stream.wakeup import Wakeup


@dataclass(frozen=True)
class Remotes:
    """The other services."""

    runtime: RuntimePort
    store: StorePort
    login: LoginClient


@dataclass(frozen=True)
class Services:
    """What endpoints and consumer work with."""

    settings: GatewaySettings
    database: Database
    remotes: Remotes
    texts: Texts
    wakeup: Wakeup
    conversations: ConversationService
    starter: RunStarter
    approvals: ApprovalService
    changes: ConversationChangeReader
    delivery: Delivery


def build_services(settings: GatewaySettings, database: Database, remotes: Remotes) -> Services:
    """Put the parts together; opens nothing."""
    texts = Texts([PACKAGE])
    wakeup = Wakeup(database, settings.database_url.get_secret_value())
    visibility = VisibilityFilter(remotes.store, settings.visibility_batch)
    languages = LanguageTitles(remotes.store, settings.language_cache)
    return Services(
        settings=settings,
        database=database,
        remotes=remotes,
        texts=texts,
        wakeup=wakeup,
        conversations=ConversationService(
            database, remotes.runtime, remotes.store, wakeup, max_messages=settings.max_messages
        ),
        starter=RunStarter(
            database,
            remotes.runtime,
            wakeup,
            give_up_after=settings.start_give_up,
            pause=settings.start_pause,
        ),
        approvals=ApprovalService(
            database,
            remotes.runtime,
            remotes.store,
            visibility,
            languages,
            texts,
            wakeup,
            decision_timeout=settings.decision_timeout,
        ),
        changes=ConversationChangeReader(database, visibility, remotes.store, texts, settings.change_rows),
        delivery=Delivery(database, remotes.runtime, Projector(settings.question_tools), wakeup),
    )


def open_database(settings: GatewaySettings) -> Database:
    """The gateway's database."""
    return Database(
        settings.database_url.get_secret_value(),
        application_name=SERVICE,
        pool_size=settings.database_pool_size,
        connect_timeout=settings.database_connect_timeout,
    )


@asynccontextmanager
async def open_remotes(settings: GatewaySettings) -> AsyncIterator[Remotes]:
    """Clients of the other services, signed with the gateway's own key."""
    key = load_signing_key(
        settings.signing_key.get_secret_value() if settings.signing_key is not None else None, settings.signing_key_file
    )
    signer = AssertionSigner(SERVICE, key)
    timeout = settings.remote_timeout

    def client(service: str, url: str, signed_by: AssertionSigner | None) -> ServiceClient:
        return ServiceClient(service, url, signed_by, timeout=timeout, transport=http_transport())

    runtime = client("agent-runtime", settings.agent_runtime_url, signer)
    store = client("content-store", settings.content_store_url, signer)
    login = client("content-store", settings.content_store_url, None)
    try:
        yield Remotes(RuntimeClient(runtime), StoreClient(store), LoginClient(login))
    finally:
        for opened in (runtime, store, login):
            await opened.close()
