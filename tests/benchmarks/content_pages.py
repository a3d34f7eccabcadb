"""Create, update, copy and move a page with content, against Wagtail on the same PostgreSQL, in turns."""

from __future__ import annotations

import asyncio

import asyncpg
from content_store.schema.loader import load_schema
from figures import Figure, median_ms
from peer_process import PeerUnavailable
from remit_harness.stacks import TestStack
from remit_local.services import STORE
from store_pages import StorePages
from wagtail_peer import WagtailPeer

#: Five times as fast.
GOAL = 0.2
#: Figure -> operation of both sides, share of the rounds, what the peer does.
_OPERATIONS = {
    "create_page": ("create", 1.0, "Wagtail: add_child, page with 10 children"),
    "update_page": ("update", 1.0, "Wagtail: save_revision and publish"),
    "copy_page": ("copy10", 0.5, "Wagtail: copy, page with 10 children"),
    "copy_page_100": ("copy100", 0.1, "Wagtail: copy, page with 100 children"),
    "move_page": ("move", 1.0, "Wagtail: move, page with 10 children"),
}


def content_pages(stack: TestStack, rounds: int) -> list[Figure]:
    """The figures; none, and the reason said, where the peer cannot be had."""
    url = stack.database_urls[STORE]
    try:
        with WagtailPeer(url) as peer:
            return asyncio.run(_measure(peer, url, stack.page("Cycling"), rounds))
    except PeerUnavailable as missing:
        print(f"pages are not compared: {missing}")
        return []


async def _measure(peer: WagtailPeer, url: str, root: int, rounds: int) -> list[Figure]:
    connection = await asyncpg.connect(url)
    try:
        pages = StorePages(connection, load_schema(), root)
        await pages.prepare()
        figures = []
        for name, (operation, share, limit) in _OPERATIONS.items():
            own, other = [], []
            for _ in range(max(round(rounds * share), 5)):
                own.append(await pages.seconds(operation))
                other.append(peer.seconds(operation))
            counted = await pages.statements(operation), peer.statements(operation)
            figures.append(
                Figure(name, median_ms(own), median_ms(other), GOAL, f"{limit}; statements {counted[0]} : {counted[1]}")
            )
        return figures
    finally:
        await connection.close()
