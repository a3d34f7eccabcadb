"""State at rest: versioned envelopes, encrypted with AES-GCM, bound to their row (T-25)."""

from __future__ import annotations

import base64
import binascii
import json
import os
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION = 1
NONCE_BYTES = 12
KEY_BYTES = 32


class StateUnreadable(Exception):
    """A stored state cannot be used: damaged, of another key, or of a version this program does not know.

    Attributes:
        reason: ``corrupt``, ``unknown_version`` or ``unknown_key``.
    """

    code = "state_unreadable"

    def __init__(self, reason: str) -> None:
        super().__init__(f"state_unreadable: {reason}")
        self.reason = reason


class StateKeyError(ValueError):
    """The key setting is no usable key."""


@dataclass(frozen=True)
class Envelope:
    """What is inside: a kind and its JSON data."""

    kind: str
    data: Any


class StateCipher:
    """Seals and opens envelopes; the first key seals, every key opens, so a key can be replaced.

    Args:
        keys: 32 bytes each.
    """

    def __init__(self, keys: list[bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise StateKeyError("a state key has 32 bytes")
        self._ciphers = [AESGCM(key) for key in keys]

    @classmethod
    def from_text(cls, text: str) -> StateCipher:
        """Keys as base64 texts, separated by commas.

        Raises:
            StateKeyError: not base64 of 32 bytes; the text is not repeated.
        """
        try:
            keys = [base64.b64decode(part.strip(), validate=True) for part in text.split(",") if part.strip()]
        except (binascii.Error, ValueError) as error:
            raise StateKeyError("a state key is base64 of 32 bytes") from error
        return cls(keys)

    def seal(self, row_id: UUID, envelope: Envelope) -> bytes:
        """The envelope encrypted for this row and no other."""
        text = json.dumps({"v": VERSION, "kind": envelope.kind, "data": envelope.data}, ensure_ascii=True)
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._ciphers[0].encrypt(nonce, text.encode("ascii"), row_id.bytes)

    def open(self, row_id: UUID, sealed: bytes) -> Envelope:
        """The envelope of a row.

        Raises:
            StateUnreadable: see there.
        """
        return read_envelope(self._decrypt(row_id, sealed))

    def _decrypt(self, row_id: UUID, sealed: bytes) -> bytes:
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], row_id.bytes)
            except (InvalidTag, ValueError):
                continue
        raise StateUnreadable("corrupt")


def read_envelope(text: bytes) -> Envelope:
    """The envelope of a decrypted text.

    Raises:
        StateUnreadable: no envelope, or of an unknown version.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise StateUnreadable("corrupt") from error
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or "data" not in value:
        raise StateUnreadable("corrupt")
    if value.get("v") != VERSION or isinstance(value.get("v"), bool):
        raise StateUnreadable("unknown_version")
    return Envelope(kind=value["kind"], data=value["data"])
