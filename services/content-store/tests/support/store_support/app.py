"""For tests: the application over a database of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import httpx2
from content_store.app import build_app
from content_store.assembly import StoreParts
from content_store.auth.settings import AuthSettings
from content_store.deps import Services
from content_store.schema.model import Schema
from content_store.settings import StoreSettings
from pydantic import SecretStr
from service_kit.auth import AssertionSigner, SigningKey, UserTokenIssuer
from service_kit.ids import uuid7

from store_support.rows import Connection, Rows

if TYPE_CHECKING:
    from content_store.schema.provision import DatabaseUrls


class StoreUnderTest:
    """The application over a database of its own, without a network.

    Attributes:
        app: started by :meth:`run`.
        client: asks it; speaks for nobody unless a token is given.
        owner: a connection that may write everything.
        rows: puts rows into its tables.
    """

    def __init__(self, urls: DatabaseUrls, schema: Schema, keys: Path, **parts: Any) -> None:
        self.signing = SigningKey.generate()
        self._services = {name: SigningKey.generate() for name in ("agent-runtime", "chat-gateway")}
        for name, key in self._services.items():
            (keys / f"{name}.pem").write_text(key.public_pem(), encoding="ascii")
        self.settings = StoreSettings(
            database_url=SecretStr(urls.service),
            signing_key=SecretStr(self.signing.private_pem()),
            trusted_keys_dir=keys,
            broker_url="memory://",
            **parts.pop("settings", {}),
        )
        self._urls = urls
        self._schema = schema
        self.auth = parts.pop("auth", None) or AuthSettings()
        self.app = build_app(
            StoreParts(
                self.settings, auth=self.auth, schema=schema, **{"sites": (), "hooks": (), **parts, "background": False}
            )
        )
        self.owner: Connection
        self.rows: Rows
        self.client: httpx2.AsyncClient

    @asynccontextmanager
    async def run(self) -> AsyncIterator[StoreUnderTest]:
        """Start it, and stop it at the end."""
        self.owner = await asyncpg.connect(self._urls.owner)
        self.rows = Rows(self.owner, self._schema)
        transport = httpx2.ASGITransport(self.app, raise_app_exceptions=False)
        try:
            async with (
                self.app.router.lifespan_context(self.app),
                httpx2.AsyncClient(transport=transport, base_url="http://store") as self.client,
            ):
                yield self
        finally:
            await self.owner.close()

    async def token(self, uid: int) -> dict[str, str]:
        """Headers of a logged-in user, without the login."""
        services: Services = self.app.state.services
        sid = uuid7()
        await self.owner.execute(
            "INSERT INTO auth_session (sid, user_uid, expires_at) VALUES ($1, $2, now() + interval '1 hour')", sid, uid
        )
        token, _ = UserTokenIssuer(
            services.signing_key, self.settings.token_issuer, self.settings.token_audience
        ).issue(uid, sid)
        return {"Authorization": f"Bearer {token}"}

    def assertion(self, service: str, uid: int | None = None) -> dict[str, str]:
        """Headers of a service, on behalf of a user or for itself."""
        signed = AssertionSigner(service, self._services[service]).sign("content-store", uid)
        return {"Authorization": f"Bearer {signed}"}
