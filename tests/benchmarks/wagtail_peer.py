"""The Wagtail peer: carries out one operation at a time."""

from __future__ import annotations

from peer_process import PeerProcess


class WagtailPeer(PeerProcess):
    """A process with a site of its own.

    Args:
        admin_url: of an administrator of the server both sides are measured on.
    """

    def __init__(self, admin_url: str) -> None:
        super().__init__("wagtail", admin_url)

    def seconds(self, operation: str) -> float:
        """Duration of one."""
        return float(self.ask(f"time {operation}")["seconds"])

    def statements(self, operation: str) -> int:
        """How many statements one sends."""
        return int(self.ask(f"count {operation}")["statements"])
