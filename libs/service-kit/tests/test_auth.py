from __future__ import annotations

import base64
import hmac
import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm
from service_kit.app import create_app
from service_kit.auth import (
    Actor,
    AssertionSigner,
    AssertionVerifier,
    AuthenticationError,
    Authenticator,
    CallerNotAllowedError,
    CallerTable,
    KeySet,
    ServiceAssertion,
    SigningKey,
    TokenExpiredError,
    TokenInvalidError,
    TrustedIssuer,
    UserToken,
    UserTokenIssuer,
    UserTokenVerifier,
    load_signing_key,
    load_trusted_keys,
    require_actor,
    require_service,
    require_user,
)
from service_kit.auth.keys import KeyMaterialError
from service_kit.auth.remote import RemoteKeySource
from service_kit.auth.tokens import fixed_keys
from service_kit.clock import utc_now
from service_kit.ids import uuid7
from service_kit.routing import Router
from service_kit.settings import ServiceSettings

KEY = SigningKey.generate()
OTHER = SigningKey.generate()
RUNTIME = SigningKey.generate()
ISSUER = UserTokenIssuer(KEY, "remit", "remit")
USERS = UserTokenVerifier([TrustedIssuer.builtin("remit", "remit", KeySet.of(KEY))])
STORE = AssertionVerifier("content-store", {"agent-runtime": KeySet.of(RUNTIME)})
SIGNER = AssertionSigner("agent-runtime", RUNTIME)
PAST = utc_now() - timedelta(hours=1)


def sign(claims: dict[str, Any], key: SigningKey = KEY, kind: str = "at+jwt", **header: Any) -> str:
    return jwt.encode(claims, key.private, algorithm="EdDSA", headers={"kid": key.kid, "typ": kind, **header})


def user_claims(**changes: Any) -> dict[str, Any]:
    _, token = ISSUER.issue(7, uuid7())
    return {name: value for name, value in {**token.claims, **changes}.items() if value is not None}


@given(st.integers(min_value=1, max_value=2**31 - 1))
async def test_a_users_token_says_who_it_is(uid: int) -> None:
    session = uuid7()
    token, issued = ISSUER.issue(uid, session)
    verified = await USERS.verify(token)
    assert (verified.user_uid, verified.session_id, verified.token_id) == (uid, session, issued.token_id)
    assert verified == issued
    assert timedelta(minutes=14) < verified.expires_at - utc_now() <= timedelta(minutes=15)


@given(st.none() | st.integers(min_value=1, max_value=2**31 - 1))
async def test_an_assertion_says_service_and_user(uid: int | None) -> None:
    verified = await STORE.verify(SIGNER.sign("content-store", uid))
    assert (verified.service, verified.user_uid) == ("agent-runtime", uid)


@given(st.data())
async def test_no_changed_token_passes(data: st.DataObject) -> None:
    token = ISSUER.issue(7, uuid7())[0]
    at = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("ABCXYZabcxyz0189-_.=!ü"))
    changed = token[:at] + letter + token[at + 1 :]
    if _bits(changed) == _bits(token):
        return
    with pytest.raises(AuthenticationError):
        await USERS.verify(changed)


def _bits(token: str) -> list[bytes] | None:
    """What the token means: the last letter of a part has bits that mean nothing."""
    try:
        return [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split(".")]
    except ValueError:
        return None


@given(st.text() | st.from_regex(r"[\w-]*\.[\w-]*\.[\w-]*", fullmatch=True))
async def test_nonsense_is_no_token(token: str) -> None:
    for verifier in (USERS, STORE):
        with pytest.raises(TokenInvalidError):
            await verifier.verify(token)


@pytest.mark.parametrize(
    ("claims", "error"),
    [
        ({}, None),
        ({"exp": int(PAST.timestamp())}, TokenExpiredError),
        ({"exp": None}, TokenInvalidError),
        ({"exp": 1e300}, TokenInvalidError),
        ({"iss": "somebody"}, TokenInvalidError),
        ({"aud": "somebody"}, TokenInvalidError),
        ({"aud": None}, TokenInvalidError),
        ({"sub": ""}, TokenInvalidError),
        ({"sub": None}, TokenInvalidError),
        ({"nbf": int((utc_now() + timedelta(hours=1)).timestamp())}, TokenInvalidError),
    ],
)
async def test_claims_of_a_users_token(claims: dict[str, Any], error: type[Exception] | None) -> None:
    token = sign(user_claims(**claims))
    if error is None:
        assert (await USERS.verify(token)).user_uid == 7
    else:
        with pytest.raises(error):
            await USERS.verify(token)


@pytest.mark.parametrize("subject", ["0", "007", "-1", "1.0", "99999999999", "4294967296", "admin", "１"])
async def test_only_a_plain_number_is_a_uid(subject: str) -> None:
    assert (await USERS.verify(sign(user_claims(sub=subject)))).user_uid is None


def _by_hand(header: dict[str, str], claims: dict[str, Any], secret: bytes | None) -> str:
    def encoded(data: bytes) -> bytes:
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    signed = encoded(json.dumps(header).encode()) + b"." + encoded(json.dumps(claims).encode())
    signature = b"" if secret is None else hmac.digest(secret, signed, "sha256")
    return (signed + b"." + encoded(signature)).decode()


async def test_a_forged_signature_or_algorithm_never_passes() -> None:
    claims = user_claims()
    header = {"kid": KEY.kid, "typ": "at+jwt"}
    forged = [
        _by_hand({**header, "alg": "none"}, claims, None),
        # The public key as an HMAC secret: the oldest trick, and the library refuses to help with it.
        _by_hand({**header, "alg": "HS256"}, claims, KEY.public_pem().encode()),
        sign(claims, OTHER),
        jwt.encode(claims, OTHER.private, algorithm="EdDSA", headers=header),
    ]
    for token in forged:
        with pytest.raises(TokenInvalidError):
            await USERS.verify(token)


async def test_one_kind_of_token_is_never_taken_for_the_other() -> None:
    both = UserTokenVerifier(
        [TrustedIssuer("agent-runtime", "content-store", fixed_keys(KeySet.of(RUNTIME)), token_types=frozenset())]
    )
    with pytest.raises(TokenInvalidError):
        await both.verify(SIGNER.sign("content-store", 7))
    services = AssertionVerifier("remit", {"remit": KeySet.of(KEY)})
    with pytest.raises(TokenInvalidError):
        await services.verify(ISSUER.issue(7, uuid7())[0])


def assertion_claims(**changes: Any) -> dict[str, Any]:
    now = int(utc_now().timestamp())
    claims = {"iss": "agent-runtime", "aud": "content-store", "sub": "7", "jti": "x", "iat": now, "exp": now + 30}
    return {**claims, "act": {"sub": "agent-runtime"}, **changes}


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"sub": "agent-runtime", "act": None}, True),
        ({"aud": "chat-gateway"}, False),
        ({"iss": "chat-gateway"}, False),
        ({"act": {"sub": "chat-gateway"}}, False),
        ({"act": "agent-runtime"}, False),
        ({"act": None}, False),
        ({"sub": "agent-runtime"}, False),
        ({"sub": "0"}, False),
        ({"exp": int(utc_now().timestamp()) + 3600}, False),
        ({"exp": int(PAST.timestamp()), "iat": int(PAST.timestamp()) - 30}, False),
    ],
)
async def test_claims_of_an_assertion(changes: dict[str, Any], good: bool) -> None:
    claims = {name: value for name, value in assertion_claims(**changes).items() if value is not None}
    token = sign(claims, RUNTIME, "service-assertion+jwt")
    if good:
        assert (await STORE.verify(token)).service == "agent-runtime"
    else:
        with pytest.raises(AuthenticationError):
            await STORE.verify(token)


def test_an_assertion_cannot_live_long() -> None:
    with pytest.raises(ValueError, match="60 seconds"):
        AssertionSigner("agent-runtime", RUNTIME, timedelta(minutes=2))


@given(st.sets(st.sampled_from("abc")), st.sampled_from("abcd"))
def test_only_what_the_table_has_is_allowed(allowed: set[str], asked: str) -> None:
    table = CallerTable({"runtime": allowed})
    assert table.allows("runtime", asked) == (asked in allowed)
    assert not table.allows("stranger", asked)
    if asked not in allowed:
        with pytest.raises(CallerNotAllowedError):
            table.check("runtime", asked)


def test_keys_are_kept_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "own.pem"
    KEY.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_signing_key(None, path).kid == KEY.kid
    assert load_signing_key(KEY.private_pem(), None).kid == KEY.kid
    with pytest.raises(FileExistsError):
        KEY.save(path)
    (tmp_path / "trusted").mkdir()
    (tmp_path / "trusted" / "agent-runtime.pem").write_text(RUNTIME.public_pem())
    trusted = load_trusted_keys(tmp_path / "trusted")
    assert trusted["agent-runtime"].get(RUNTIME.kid) is not None


@pytest.mark.parametrize("pem", ["", "nonsense", KEY.public_pem()], ids=["empty", "nonsense", "public"])
def test_a_bad_key_is_named_without_its_content(pem: str, tmp_path: Path) -> None:
    path = tmp_path / "own.pem"
    path.write_text(pem)
    with pytest.raises(KeyMaterialError) as error:
        load_signing_key(None, path)
    assert str(path) in str(error.value)
    assert not pem or pem not in str(error.value)
    assert "private" not in repr(KEY)


async def test_an_oidc_issuer_may_sign_with_its_own_algorithm_and_claim() -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    jwk = json.loads(ECAlgorithm.to_jwk(private.public_key())) | {"kid": "k1", "alg": "ES256"}
    fetched: list[int] = []

    async def fetch() -> KeySet:
        fetched.append(1)
        return KeySet.from_jwks({"keys": [jwk, {"kty": "oct", "k": "c2VjcmV0", "kid": "h", "alg": "HS256"}]})

    keys = RemoteKeySource(fetch, (OSError,))
    verifier = UserTokenVerifier([TrustedIssuer.oidc("https://idp", "remit", keys, "preferred_username")])
    claims = {"iss": "https://idp", "aud": ["remit"], "exp": int(utc_now().timestamp()) + 60}
    token = jwt.encode({**claims, "preferred_username": "anna"}, private, algorithm="ES256", headers={"kid": "k1"})
    for _ in range(3):
        verified = await verifier.verify(token)
        assert (verified.subject, verified.user_uid) == ("anna", None)
    assert len(fetched) == 1
    symmetric = jwt.encode(
        {**claims, "preferred_username": "eve"}, "secret" * 8, algorithm="HS256", headers={"kid": "h"}
    )
    invented = jwt.encode(
        {**claims, "preferred_username": "eve"}, private, algorithm="ES256", headers={"kid": "unknown"}
    )
    for bad in (symmetric, invented, invented):
        with pytest.raises(TokenInvalidError):
            await verifier.verify(bad)
    assert len(fetched) == 1, "invented key ids must not make us ask the issuer again and again"


async def test_an_issuer_that_does_not_answer_refuses_tokens() -> None:
    async def fetch() -> KeySet:
        raise OSError

    assert len(await RemoteKeySource(fetch, (OSError,))("k")) == 0


def api() -> FastAPI:
    router = Router(prefix="/v1")

    @router.get("/user")
    async def user(actor: Annotated[Actor, require_user()]) -> int:
        return actor.user_uid

    @router.get("/service")
    async def service(caller: Annotated[ServiceAssertion, require_service("calls.apply")]) -> str:
        return caller.service

    @router.get("/forbidden")
    async def forbidden(caller: Annotated[ServiceAssertion, require_service("users.delete")]) -> str:
        return caller.service

    @router.get("/actor")
    async def actor(who: Annotated[Actor, require_actor("visibility")]) -> dict[str, Any]:
        return {"uid": who.user_uid, "service": who.service}

    async def resolve(token: UserToken) -> int:
        if token.user_uid == 66:
            raise TokenInvalidError
        assert token.user_uid is not None
        return token.user_uid

    authenticator = Authenticator(
        users=USERS,
        services=STORE,
        callers=CallerTable({"agent-runtime": {"calls.apply", "visibility"}}),
        resolve_user=resolve,
    )
    settings = ServiceSettings(database_url="postgresql://nowhere/x")
    return create_app("auth", settings, [router], state={"authenticator": authenticator})


async def test_routes_know_their_callers() -> None:
    user, expired = ISSUER.issue(7, uuid7())[0], ISSUER.issue(7, uuid7(), PAST)[0]
    disabled = ISSUER.issue(66, uuid7())[0]
    alone, behalf = SIGNER.sign("content-store"), SIGNER.sign("content-store", 7)
    async with AsyncClient(transport=ASGITransport(api()), base_url="http://test") as http:

        async def get(path: str, token: str | None) -> tuple[int, Any]:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            response = await http.get(f"/v1/{path}", headers=headers)
            if response.status_code == 401:
                assert response.headers["www-authenticate"].startswith("Bearer")
            body = response.json()
            return response.status_code, body if response.status_code == 200 else body["code"]

        assert await get("user", user) == (200, 7)
        assert await get("user", None) == (401, "token_missing")
        assert await get("user", "nonsense") == (401, "token_invalid")
        assert await get("user", expired) == (401, "token_expired")
        assert await get("user", disabled) == (401, "token_invalid")
        assert await get("user", behalf) == (401, "token_invalid")
        assert await get("service", alone) == (200, "agent-runtime")
        assert await get("service", user) == (401, "token_invalid")
        assert await get("forbidden", alone) == (403, "caller_not_allowed")
        assert await get("actor", user) == (200, {"uid": 7, "service": None})
        assert await get("actor", behalf) == (200, {"uid": 7, "service": "agent-runtime"})
        assert await get("actor", alone) == (401, "token_invalid")
        assert await get("actor", None) == (401, "token_missing")


def test_moments_have_a_zone() -> None:
    assert ISSUER.issue(1, uuid7(), datetime(2026, 1, 1, tzinfo=UTC))[1].expires_at.tzinfo is UTC
