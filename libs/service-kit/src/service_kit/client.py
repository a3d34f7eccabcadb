"""How one service calls another: signed, timed, with typed errors, and repeated only where repeating is harmless."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol
from uuid import UUID

import httpx2
import stamina

from service_kit.auth.keys import KeyMaterialError, KeySet
from service_kit.auth.tokens import KeySource
from service_kit.context import propagation_headers
from service_kit.problems import MEDIA_TYPE, ProblemError

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_RETRIED_STATUS = frozenset({502, 503, 504})


class Signer(Protocol):
    """Makes assertions; :class:`service_kit.auth.AssertionSigner` is one."""

    def sign(self, audience: str, user_uid: int | None = None) -> str:
        """An assertion for a service, on behalf of a user or not."""


class RemoteError(Exception):
    """Base of what a call to another service can end in, other than an answer."""


class RemoteProblem(RemoteError):
    """The other service answered with an error.

    Attributes:
        service: who answered.
        code: stable code of the problem; ``unknown_problem`` when it sent no problem document.
        status: HTTP status.
        document: the whole problem document, or an empty one.
        headers: of the response, lower-case names.
    """

    def __init__(
        self, service: str, code: str, status: int, document: Mapping[str, Any], headers: Mapping[str, str]
    ) -> None:
        super().__init__(f"{service} answered {status} {code}")
        self.service = service
        self.code = code
        self.status = status
        self.document = dict(document)
        self.headers = dict(headers)


class RemoteUnavailable(RemoteError):
    """No answer: connection refused, cut or timed out. Whether the request had an effect is not known.

    Attributes:
        service: who did not answer.
        sent: false only when the connection was never made, so that nothing can have happened.
    """

    def __init__(self, service: str, reason: str, *, sent: bool) -> None:
        super().__init__(f"{service} does not answer ({reason})")
        self.service = service
        self.sent = sent


class RemoteServiceUnavailableError(ProblemError):
    """What a caller of ours hears when another service of ours does not answer."""

    code = "service_unavailable"
    status = 503
    title = "A part of the system does not answer at the moment"
    detail_text = "{service} does not answer."


class ServiceClient:
    """A client of one service.

    Args:
        service: name of the service that is called; audience of the assertions.
        base_url: e.g. ``http://content-store:8000``.
        signer: signs each request; ``None`` sends none.
        timeout: seconds for one attempt as a whole wait on the network (connect, write, read).
        connect_timeout: seconds to connect.
        read_attempts: how often a safe request is tried.
        transport: for tests.
    """

    def __init__(
        self,
        service: str,
        base_url: str,
        signer: Signer | None,
        *,
        timeout: float = 30.0,
        connect_timeout: float = 5.0,
        read_attempts: int = 3,
        max_connections: int = 100,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.service = service
        self.base_url = base_url.rstrip("/")
        self._signer = signer
        self._read_attempts = read_attempts
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(timeout, connect=connect_timeout),
            limits=httpx2.Limits(max_connections=max_connections),
            transport=transport,
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        user_uid: int | None = None,
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, str | int | bool | None] | None = None,
        headers: Mapping[str, str] | None = None,
        idempotency_key: UUID | str | None = None,
        base_url: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - handed to the HTTP client, per wait
    ) -> httpx2.Response:
        """Send a request and return a successful answer.

        Safe methods are tried again when the connection fails or the service is restarting. Nothing else ever is:
        whoever sent it resolves by id what became of it.

        Args:
            method: HTTP method.
            path: begins with ``/``.
            user_uid: the user on whose behalf.
            json: body as JSON values.
            content: body as bytes that are already JSON; sent unchanged.
            params: query; ``None`` values are left out.
            headers: further headers.
            idempotency_key: sent as ``Idempotency-Key``.
            base_url: another process of the same service (an interactive call's address).
            timeout: seconds instead of the client's.

        Raises:
            RemoteProblem: the service answered with an error.
            RemoteUnavailable: it did not answer.
        """
        merged = dict(headers or {})
        if content is not None:
            merged.setdefault("Content-Type", "application/json")
        if idempotency_key is not None:
            merged["Idempotency-Key"] = str(idempotency_key)
        attempts = self._read_attempts if method.upper() in SAFE_METHODS else 1
        url = f"{(base_url or self.base_url).rstrip('/')}{path}"
        options: dict[str, Any] = {"json": json, "content": content, "params": _present(params)}
        if timeout is not None:
            options["timeout"] = timeout
        async for attempt in stamina.retry_context(
            on=_worth_repeating, attempts=attempts, wait_initial=0.1, wait_max=2.0, timeout=None
        ):
            with attempt:
                return await self._once(method, url, user_uid, merged, options)
        raise AssertionError("unreachable: a retry context either returns or raises")

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, user_uid: int | None = None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """An answer that is read while it arrives (server-sent events), without a read timeout; never repeated.

        Raises:
            RemoteProblem: the service answered with an error.
            RemoteUnavailable: it did not answer, or the connection was cut.
        """
        merged = {**(headers or {}), **self._own_headers(user_uid)}
        try:
            async with self._http.stream(
                method, f"{self.base_url}{path}", headers=merged, timeout=httpx2.Timeout(None, connect=5.0)
            ) as response:
                if response.status_code >= 400:
                    await response.aread()
                    raise _problem(self.service, response)
                yield response
        except httpx2.TransportError as error:
            raise _unavailable(self.service, error) from error

    async def get_json(self, path: str, **options: Any) -> Any:
        """``GET`` and the answer's JSON values; arguments as in :meth:`request`."""
        return (await self.request("GET", path, **options)).json()

    async def post_json(self, path: str, json: Any = None, **options: Any) -> Any:
        """``POST`` and the answer's JSON values, ``None`` for an empty answer; arguments as in :meth:`request`."""
        response = await self.request("POST", path, json=json, **options)
        return response.json() if response.content else None

    async def ping(self) -> None:
        """For readiness: the service's process answers; raises :class:`RemoteError` otherwise."""
        await self._once("GET", f"{self.base_url}/healthz", None, {}, {})

    async def _once(
        self, method: str, url: str, user_uid: int | None, headers: Mapping[str, str], options: Mapping[str, Any]
    ) -> httpx2.Response:
        merged = {**headers, **self._own_headers(user_uid)}
        try:
            response = await self._http.request(method, url, headers=merged, **options)
        except httpx2.TransportError as error:
            raise _unavailable(self.service, error) from error
        if response.status_code >= 400:
            raise _problem(self.service, response)
        return response

    def _own_headers(self, user_uid: int | None) -> dict[str, str]:
        headers = propagation_headers()
        if self._signer is not None:
            headers["Authorization"] = f"Bearer {self._signer.sign(self.service, user_uid)}"
        return headers


def _present(params: Mapping[str, str | int | bool | None] | None) -> dict[str, str | int] | None:
    """Query values in their JSON form: ``true``, not ``True``."""
    if params is None:
        return None
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in params.items()
        if value is not None
    }


def _worth_repeating(error: Exception) -> bool:
    if isinstance(error, RemoteProblem):
        return error.status in _RETRIED_STATUS
    return isinstance(error, RemoteUnavailable)


def _unavailable(service: str, error: httpx2.TransportError) -> RemoteUnavailable:
    never_sent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
    return RemoteUnavailable(service, type(error).__name__, sent=not never_sent)


def _problem(service: str, response: httpx2.Response) -> RemoteProblem:
    document: dict[str, Any] = {}
    if response.headers.get("content-type", "").partition(";")[0] == MEDIA_TYPE:
        try:
            loaded = response.json()
        except ValueError:
            loaded = None
        if isinstance(loaded, dict):
            document = loaded
    code = document.get("code")
    return RemoteProblem(
        service,
        code if isinstance(code, str) else "unknown_problem",
        response.status_code,
        document,
        {name.lower(): value for name, value in response.headers.items()},
    )


def remote_keys(url: str, *, timeout: float = 5.0) -> KeySource:
    """Keys of an issuer from the address of its JWK set, fetched when first needed and again for an unknown key id.

    A failed or too frequent fetch keeps what was known: an unknown key id may be an attacker's.

    Args:
        url: of the JWK set.
        timeout: seconds.
    """
    from service_kit.auth.remote import RemoteKeySource

    async def fetch() -> KeySet:
        async with httpx2.AsyncClient(timeout=timeout, follow_redirects=False) as http:
            response = await http.get(url)
            response.raise_for_status()
            document = response.json()
        if not isinstance(document, dict):
            raise KeyMaterialError("not a JWK set")
        return KeySet.from_jwks(document)

    return RemoteKeySource(fetch, (httpx2.HTTPError, ValueError))
