from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from content_store.auth.passwords import hash_password
from service_kit.auth import SigningKey, UserTokenIssuer
from service_kit.clock import utc_now
from store_support.app import StoreUnderTest

SECRET = "secret"
HASH = hash_password(SECRET)


@pytest.fixture
async def editor(store: StoreUnderTest) -> int:
    return await store.rows.user(7, "editor", password=HASH, realName="Eda Itor", lang="de")


async def login(store: StoreUnderTest, username: str = "editor", password: str = SECRET) -> httpx2.Response:
    return await store.client.post("/v1/auth/login", json={"username": username, "password": password})


async def tokens(store: StoreUnderTest) -> dict[str, Any]:
    response = await login(store)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def me(store: StoreUnderTest, token: str) -> httpx2.Response:
    return await store.client.get("/v1/auth/me", headers=bearer(token))


async def test_login_me_refresh_logout(store: StoreUnderTest, editor: int) -> None:
    first = await tokens(store)
    assert first["user"] == {"uid": 7, "username": "editor", "name": "Eda Itor", "locale": "de", "admin": False}
    assert first["expiresIn"] == 900
    assert (await me(store, first["accessToken"])).json()["uid"] == editor
    response = await store.client.post("/v1/auth/refresh", json={"refreshToken": first["refreshToken"]})
    second = response.json()
    assert response.status_code == 200
    assert second["refreshToken"] != first["refreshToken"]
    assert (await me(store, second["accessToken"])).status_code == 200
    response = await store.client.post("/v1/auth/logout", headers=bearer(second["accessToken"]))
    assert response.status_code == 204
    # Both access tokens belong to the session that ended.
    for token in (first["accessToken"], second["accessToken"]):
        assert (await me(store, token)).json()["code"] == "token_invalid"
    response = await store.client.post("/v1/auth/refresh", json={"refreshToken": second["refreshToken"]})
    assert (response.status_code, response.json()["code"]) == (401, "refresh_failed")


@pytest.mark.parametrize(
    ("username", "password", "status"),
    [
        ("editor", "secret", 200),
        ("  EDITOR ", "secret", 200),
        ("editor", "Secret", 401),
        ("nobody", "secret", 401),
        ("edi\x00tor", "secret", 401),
        ("disabled", "secret", 401),
    ],
)
async def test_who_gets_in(store: StoreUnderTest, editor: int, username: str, password: str, status: int) -> None:
    await store.rows.user(8, "disabled", password=HASH, disable=1)
    response = await login(store, username, password)
    assert response.status_code == status
    if status == 401:
        assert response.json()["code"] == "login_failed"
        assert await store.owner.fetchval("SELECT count(*) FROM auth_session") == 0


async def test_five_failures_then_a_pause_for_this_user_only(store: StoreUnderTest, editor: int) -> None:
    await store.rows.user(8, "other", password=HASH)
    for _ in range(5):
        assert (await login(store, password="wrong")).status_code == 401
    refused = await login(store)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_logins")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert (await login(store, "other")).status_code == 200
    # The window is over.
    await store.owner.execute("UPDATE auth_login_attempt SET attempted_at = attempted_at - interval '61 seconds'")
    assert (await login(store)).status_code == 200


async def test_a_burst_does_not_slip_under_the_limit(store: StoreUnderTest, editor: int) -> None:
    answers = await asyncio.gather(*(login(store, password="wrong") for _ in range(9)))
    statuses = [answer.status_code for answer in answers]
    assert (statuses.count(401), statuses.count(429)) == (5, 4)


async def test_a_login_that_succeeds_clears_the_failures_before(store: StoreUnderTest, editor: int) -> None:
    for _ in range(2):
        for _ in range(4):
            await login(store, password="wrong")
        assert (await login(store)).status_code == 200


async def test_a_refresh_token_used_twice_ends_the_session(store: StoreUnderTest, editor: int) -> None:
    first = await tokens(store)
    exchange = {"refreshToken": first["refreshToken"]}
    second = (await store.client.post("/v1/auth/refresh", json=exchange)).json()
    again = await store.client.post("/v1/auth/refresh", json=exchange)
    assert (again.status_code, again.json()["code"]) == (401, "refresh_failed")
    assert (await me(store, second["accessToken"])).status_code == 401
    last = await store.client.post("/v1/auth/refresh", json={"refreshToken": second["refreshToken"]})
    assert last.status_code == 401


async def test_one_refresh_token_is_exchanged_once_however_many_ask(store: StoreUnderTest, editor: int) -> None:
    exchange = {"refreshToken": (await tokens(store))["refreshToken"]}
    answers = await asyncio.gather(*(store.client.post("/v1/auth/refresh", json=exchange) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401, 401, 401]


@pytest.mark.parametrize("change", ["disable = 1", "deleted = 1", "endtime = 1", "starttime = 4000000000"])
async def test_tokens_of_a_disabled_user_stop_at_once(store: StoreUnderTest, editor: int, change: str) -> None:
    found = await tokens(store)
    assert (await me(store, found["accessToken"])).status_code == 200
    await store.owner.execute(f"UPDATE be_users SET {change} WHERE uid = 7")
    assert (await me(store, found["accessToken"])).status_code == 401
    refreshed = await store.client.post("/v1/auth/refresh", json={"refreshToken": found["refreshToken"]})
    assert refreshed.status_code == 401
    sites = await store.client.get("/v1/sites", headers=store.assertion("agent-runtime", 7))
    assert sites.status_code == 401


async def test_sessions_are_told_to_services_only(store: StoreUnderTest, editor: int) -> None:
    found = await tokens(store)
    sid = await store.owner.fetchval("SELECT sid FROM auth_session")
    url = f"/v1/auth/sessions/{sid}"
    active = await store.client.get(url, headers=store.assertion("chat-gateway"))
    assert active.json() == {"active": True, "userUid": 7}
    assert (await store.client.get(url, headers=bearer(found["accessToken"]))).status_code == 401
    await store.client.post("/v1/auth/logout", headers=bearer(found["accessToken"]))
    ended = await store.client.get(url, headers=store.assertion("agent-runtime"))
    assert ended.json() == {"active": False, "userUid": None}
    unknown = await store.client.get(f"/v1/auth/sessions/{uuid4()}", headers=store.assertion("agent-runtime"))
    assert unknown.json()["active"] is False


async def test_forged_and_expired_tokens(store: StoreUnderTest, editor: int) -> None:
    await tokens(store)
    sid = await store.owner.fetchval("SELECT sid FROM auth_session")
    good = UserTokenIssuer(store.signing, "remit", "remit")
    forged = UserTokenIssuer(SigningKey.generate(), "remit", "remit")
    answers = {
        "good": good.issue(7, sid)[0],
        "forged": forged.issue(7, sid)[0],
        "expired": good.issue(7, sid, utc_now() - timedelta(hours=1))[0],
        # The session belongs to somebody else.
        "other": good.issue(8, sid)[0],
        "nonsense": "a.b.c",
        "audience": UserTokenIssuer(store.signing, "remit", "elsewhere").issue(7, sid)[0],
    }
    codes = {name: (await me(store, token)).json().get("code") for name, token in answers.items()}
    assert codes == {
        "good": None,
        "forged": "token_invalid",
        "expired": "token_expired",
        "other": "token_invalid",
        "nonsense": "token_invalid",
        "audience": "token_invalid",
    }
    assert (await store.client.get("/v1/auth/me")).json()["code"] == "token_missing"


async def test_keys_are_published_without_the_private_half(store: StoreUnderTest) -> None:
    (key,) = (await store.client.get("/v1/auth/jwks")).json()["keys"]
    assert key["kid"] == store.signing.kid
    assert "d" not in key


async def test_no_secret_is_stored(store: StoreUnderTest, editor: int) -> None:
    found = await tokens(store)
    stored = await store.owner.fetch("SELECT encode(token_hash, 'escape') AS text FROM auth_refresh_token")
    assert found["refreshToken"] not in {row["text"] for row in stored}
