"""Whom the store believes: its own access tokens, those of an OIDC issuer, and the assertions of other services."""

from __future__ import annotations

import json
from datetime import timedelta

from service_kit.auth import (
    AssertionVerifier,
    Authenticator,
    KeySet,
    SigningKey,
    TrustedIssuer,
    UserTokenIssuer,
    UserTokenVerifier,
    load_signing_key,
    load_trusted_keys,
)
from service_kit.auth.tokens import KeySource, fixed_keys
from service_kit.client import remote_keys
from service_kit.settings import SettingsError

from content_store.auth.service import AuthService
from content_store.auth.settings import AuthSettings
from content_store.deps import CALLERS
from content_store.settings import StoreSettings

SERVICE = "content-store"


class Identity:
    """Keys and issuers, from the settings.

    Args:
        settings: of the service.
        auth: lifetimes of tokens.

    Raises:
        KeyMaterialError: a key cannot be read.
        SettingsError: an OIDC issuer without audience or keys.
    """

    def __init__(self, settings: StoreSettings, auth: AuthSettings) -> None:
        pem = settings.signing_key.get_secret_value() if settings.signing_key is not None else None
        self.key: SigningKey = load_signing_key(pem, settings.signing_key_file)
        self.issuer = UserTokenIssuer(self.key, settings.token_issuer, settings.token_audience, auth.access)
        leeway = timedelta(seconds=settings.token_leeway)
        issuers = [TrustedIssuer.builtin(settings.token_issuer, settings.token_audience, KeySet.of(self.key))]
        if settings.oidc_issuer is not None:
            issuers.append(_oidc(settings))
        self._users = UserTokenVerifier(issuers, leeway)
        trusted = load_trusted_keys(settings.trusted_keys_dir) if settings.trusted_keys_dir is not None else {}
        self._services = AssertionVerifier(SERVICE, trusted, leeway)

    def authenticator(self, auth: AuthService) -> Authenticator:
        """What the routes ask; each access token is looked up, so an ended session or a disabled user stops at once."""
        return Authenticator(users=self._users, services=self._services, callers=CALLERS, resolve_user=auth.resolve)


def _oidc(settings: StoreSettings) -> TrustedIssuer:
    if settings.oidc_issuer is None or settings.oidc_audience is None:
        raise SettingsError(["CONTENT_STORE_OIDC_AUDIENCE: is not set"])
    keys: KeySource
    if settings.oidc_jwks_file is not None:
        keys = fixed_keys(KeySet.from_jwks(json.loads(settings.oidc_jwks_file.read_text("utf-8"))))
    elif settings.oidc_jwks_url is not None:
        keys = remote_keys(settings.oidc_jwks_url)
    else:
        raise SettingsError(["CONTENT_STORE_OIDC_JWKS_URL: is not set"])
    return TrustedIssuer.oidc(settings.oidc_issuer, settings.oidc_audience, keys, settings.oidc_user_claim)
