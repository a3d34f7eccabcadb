"""Access tokens of an OIDC issuer: its claim names the user."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import jwt
import pytest
from content_store.identity import Identity
from content_store.schema.model import Schema
from content_store.schema.provision import DatabaseUrls
from service_kit.auth import SigningKey
from service_kit.clock import utc_now
from service_kit.settings import SettingsError
from store_support.app import StoreUnderTest
from store_support.rows import empty_tables

ISSUER = "https://login.example.org"
PROVIDER = SigningKey.generate()


@pytest.fixture
async def store(
    store_database: tuple[str, DatabaseUrls], schema: Schema, tmp_path: Path
) -> AsyncIterator[StoreUnderTest]:
    admin_url, urls = store_database
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps({"keys": [PROVIDER.public_jwk()]}), encoding="utf-8")
    folder = tmp_path / "keys"
    folder.mkdir()
    settings = {
        "oidc_issuer": ISSUER,
        "oidc_audience": "remit",
        "oidc_jwks_file": keys,
        "oidc_user_claim": "email",
    }
    async with StoreUnderTest(urls, schema, folder, settings=settings).run() as started:
        await started.rows.user(7, "eda@example.org")
        await started.rows.user(8, "gone@example.org", disable=1)
        yield started
    admin = await asyncpg.connect(admin_url)
    await empty_tables(admin)
    await admin.close()


def token(key: SigningKey = PROVIDER, **claims: Any) -> dict[str, str]:
    now = int(utc_now().timestamp())
    content = {"iss": ISSUER, "aud": "remit", "sub": "abc", "iat": now, "exp": now + 60, **claims}
    signed = jwt.encode(content, key.private, algorithm="EdDSA", headers={"kid": key.kid})
    return {"Authorization": f"Bearer {signed}"}


async def test_the_claim_names_the_user(store: StoreUnderTest) -> None:
    answers = {
        "known": token(email="Eda@example.org"),
        "unknown": token(email="nobody@example.org"),
        "disabled": token(email="gone@example.org"),
        # A subject that looks like a uid is no uid of ours.
        "number": token(email="7"),
        "no claim": token(),
        "forged": token(SigningKey.generate(), email="eda@example.org"),
        "other audience": token(email="eda@example.org", aud="elsewhere"),
        "other issuer": token(email="eda@example.org", iss="https://elsewhere"),
    }
    found = {}
    for name, headers in answers.items():
        found[name] = (await store.client.get("/v1/auth/me", headers=headers)).status_code
    assert found == {name: 200 if name == "known" else 401 for name in answers}


async def test_an_issuer_without_keys_stops_the_start(store: StoreUnderTest) -> None:
    for missing in ("oidc_jwks_file", "oidc_audience"):
        settings = store.settings.model_copy(update={missing: None})
        with pytest.raises(SettingsError, match="is not set"):
            Identity(settings, store.auth)
