from __future__ import annotations

import pytest
from content_store.auth.passwords import MAX_PASSWORD_LENGTH, check_password, hash_password, needs_rehash

OLD = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$vFGQjnOXdvnDNNWmUhsFQQ"


async def test_a_password_is_stored_as_argon2_and_checked() -> None:
    stored = hash_password("correct horse")
    assert stored.startswith("$argon2id$")
    assert "correct" not in stored
    assert stored != hash_password("correct horse")
    assert await check_password(stored, "correct horse")
    assert not await check_password(stored, "correct horsf")
    assert not needs_rehash(stored)


@pytest.mark.parametrize("stored", [None, "", "$1$tCrlLajZ$C0sikFQQ3SWaFAZ1Me0Z/1", "plain"])
async def test_nobody_logs_in_without_a_stored_form_of_ours(stored: str | None) -> None:
    assert not await check_password(stored, "plain")
    assert not await check_password(stored, "no such user")


@pytest.mark.parametrize("password", ["", "x" * (MAX_PASSWORD_LENGTH + 1)])
async def test_what_is_no_password(password: str) -> None:
    with pytest.raises(ValueError, match="1 to 1024"):
        hash_password(password)
    assert not await check_password(hash_password("x"), password)


def test_weaker_hashes_are_noticed() -> None:
    assert needs_rehash(OLD)
    assert not needs_rehash("no hash")
