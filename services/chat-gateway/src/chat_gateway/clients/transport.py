"""HTTP transports that share one TLS context: reading the certificate store takes a quarter of a second each time."""

from __future__ import annotations

import ssl
from functools import cache

import httpx2

MAX_CONNECTIONS = 100


@cache
def tls_context() -> ssl.SSLContext:
    """The process's TLS context: certificates of the system, host names checked."""
    return ssl.create_default_context()


def http_transport() -> httpx2.AsyncHTTPTransport:
    """A transport of its own for one client."""
    return httpx2.AsyncHTTPTransport(
        verify=tls_context(), limits=httpx2.Limits(max_connections=MAX_CONNECTIONS), trust_env=False
    )
