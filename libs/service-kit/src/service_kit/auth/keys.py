"""Ed25519 keys: made, loaded from PEM text or files, published as a JWK set."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from jwt import PyJWK
from jwt.exceptions import PyJWKError


class KeyMaterialError(Exception):
    """A key cannot be read; the text names its place, never its content."""


def _thumbprint(key: Ed25519PublicKey) -> str:
    """The key id: the JWK thumbprint of RFC 7638, so both sides compute the same one."""
    canonical = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": _x(key)}, separators=(",", ":"), sort_keys=True)
    return base64.urlsafe_b64encode(hashlib.sha256(canonical.encode()).digest()).rstrip(b"=").decode()


def _x(key: Ed25519PublicKey) -> str:
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@dataclass(frozen=True)
class SigningKey:
    """A private key with its key id."""

    private: Ed25519PrivateKey = field(repr=False)
    kid: str

    @classmethod
    def generate(cls) -> SigningKey:
        """A new key."""
        private = Ed25519PrivateKey.generate()
        return cls(private, _thumbprint(private.public_key()))

    @classmethod
    def from_pem(cls, pem: str | bytes, place: str = "the signing key") -> SigningKey:
        """Read a PKCS 8 PEM.

        Raises:
            KeyMaterialError: no readable Ed25519 private key.
        """
        data = pem.encode() if isinstance(pem, str) else pem
        try:
            private = serialization.load_pem_private_key(data, password=None)
        except (ValueError, TypeError) as error:
            raise KeyMaterialError(f"{place} is no readable PEM private key") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise KeyMaterialError(f"{place} is no Ed25519 key")
        return cls(private, _thumbprint(private.public_key()))

    def private_pem(self) -> str:
        """PKCS 8, not encrypted; keep it in a file only its owner reads (:meth:`save`)."""
        return self.private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()

    def public_pem(self) -> str:
        """The public half."""
        return (
            self.private.public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            .decode()
        )

    def public_jwk(self) -> dict[str, str]:
        """The public half as a JWK."""
        return {
            "kty": "OKP",
            "crv": "Ed25519",
            "x": _x(self.private.public_key()),
            "kid": self.kid,
            "use": "sig",
            "alg": "EdDSA",
        }

    def save(self, path: Path) -> None:
        """Write the private key readable by its owner only; an existing file is never overwritten.

        Raises:
            FileExistsError: there is a file already.
        """
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(self.private_pem())


class KeySet:
    """Public keys by key id, each with the algorithms it may be used with."""

    def __init__(self, keys: Iterable[PyJWK] = ()) -> None:
        self._keys = {key.key_id: key for key in keys if key.key_id is not None}

    @classmethod
    def of(cls, *keys: SigningKey) -> KeySet:
        """The public halves of own keys."""
        return cls.from_jwks({"keys": [key.public_jwk() for key in keys]})

    @classmethod
    def from_jwks(cls, document: Mapping[str, Any]) -> KeySet:
        """Read a JWK set; symmetric keys, encryption keys and keys of unknown kinds are left out.

        Raises:
            KeyMaterialError: not a JWK set.
        """
        entries = document.get("keys")
        if not isinstance(entries, list):
            raise KeyMaterialError("not a JWK set")
        keys = []
        for entry in entries:
            if not isinstance(entry, dict) or entry.get("kty") == "oct" or entry.get("use", "sig") != "sig":
                continue
            try:
                keys.append(PyJWK.from_dict(entry))
            except PyJWKError:
                continue
        return cls(keys)

    @classmethod
    def from_public_pem(cls, pem: str | bytes, place: str = "the public key") -> KeySet:
        """One Ed25519 public key.

        Raises:
            KeyMaterialError: no readable Ed25519 public key.
        """
        data = pem.encode() if isinstance(pem, str) else pem
        try:
            public = serialization.load_pem_public_key(data)
        except (ValueError, TypeError) as error:
            raise KeyMaterialError(f"{place} is no readable PEM public key") from error
        if not isinstance(public, Ed25519PublicKey):
            raise KeyMaterialError(f"{place} is no Ed25519 key")
        jwk = {"kty": "OKP", "crv": "Ed25519", "x": _x(public), "kid": _thumbprint(public), "alg": "EdDSA"}
        return cls.from_jwks({"keys": [jwk]})

    def get(self, kid: str) -> PyJWK | None:
        """The key with this id."""
        return self._keys.get(kid)

    def __len__(self) -> int:
        return len(self._keys)


def load_signing_key(pem: str | None, path: Path | None) -> SigningKey:
    """The service's own key, from PEM text (wins) or a file.

    Raises:
        KeyMaterialError: neither is given, or it cannot be read.
    """
    if pem:
        return SigningKey.from_pem(pem, "the signing key")
    if path is None:
        raise KeyMaterialError("no signing key is set")
    try:
        return SigningKey.from_pem(path.read_bytes(), f"the signing key {path}")
    except OSError as error:
        raise KeyMaterialError(f"the signing key {path} cannot be read") from error


def load_trusted_keys(folder: Path) -> dict[str, KeySet]:
    """Public keys of other services: ``<service>.pem`` each, named like the issuer of its assertions.

    Raises:
        KeyMaterialError: the folder or a key cannot be read.
    """
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".pem")
        return {path.stem: KeySet.from_public_pem(path.read_bytes(), str(path)) for path in files}
    except OSError as error:
        raise KeyMaterialError(f"the folder {folder} cannot be read") from error
