"""Stored forms of passwords: argon2id, made and checked outside of the event loop's thread."""

from __future__ import annotations

import asyncio
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

#: Longer texts are no password; hashing them would only cost time.
MAX_PASSWORD_LENGTH = 1024
# What OWASP asks for at least: a login then takes little memory, so a burst of them cannot exhaust the service.
_hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


def hash_password(password: str) -> str:
    """The stored form of a password; what the DataHandler writes for fields of type password. Takes some 20 ms of CPU.

    Raises:
        ValueError: the password is empty or longer than :data:`MAX_PASSWORD_LENGTH`.
    """
    if not 0 < len(password) <= MAX_PASSWORD_LENGTH:
        raise ValueError("a password has 1 to 1024 characters")
    return _hasher.hash(password)


@cache
def _unknown_user_hash() -> str:
    return _hasher.hash("no such user")


async def check_password(stored: str | None, password: str) -> bool:
    """Does the password belong to the stored form?

    Without a stored form the same work is done for nothing, so an unknown user takes as long as a wrong password.
    """
    if len(password) > MAX_PASSWORD_LENGTH:
        return False
    return await asyncio.to_thread(_verify, stored, password)


def _verify(stored: str | None, password: str) -> bool:
    try:
        _hasher.verify(stored or _unknown_user_hash(), password)
    except InvalidHashError:
        # A stored form of another kind: nobody can log in with it, and that must not be noticed by the time it takes.
        _verify(None, password)
        return False
    except VerificationError:
        return False
    return bool(stored)


def needs_rehash(stored: str) -> bool:
    """Was the stored form made with weaker settings than today's?"""
    try:
        return _hasher.check_needs_rehash(stored)
    except InvalidHashError:
        return False
