"""Loads the demo site through the store's API, as its administrator: rights, history and events as for anybody."""

from __future__ import annotations

import asyncio
from typing import Any

from remit_local.clients import ApiClient
from remit_local.demo import maps
from remit_local.demo.files import register_pictures
from remit_local.demo.people import ADMIN
from remit_local.demo.site import Page, demo_site

CARRIED_OUT = frozenset({"written", "unchanged"})


class DemoLoadError(RuntimeError):
    """The store did not take the demo site as a whole; the text names the first entries it refused."""


class DemoLoader:
    """Sends the site's datamaps one after the other and keeps the uids."""

    def __init__(self, store: ApiClient, secrets: dict[str, str], owner_url: str) -> None:
        self._store = store
        self._secrets = secrets
        self._owner_url = owner_url
        self._uids: dict[str, int] = {}

    def load(self) -> dict[str, Any]:
        """Make everything; the answer names the records the story needs.

        Raises:
            DemoLoadError: an entry was refused, or the site's root is not the page the site file names.
        """
        self._store.login(ADMIN, self._secrets[ADMIN])
        pages = demo_site()
        self._send(maps.ground_map())
        self._send(maps.mount_map(self._known))
        self._send(maps.pages_map(pages, self._known))
        if self._uids[pages[0].key] != 1:
            raise DemoLoadError(f"the site's root became page {self._uids[pages[0].key]}, its site file names page 1")
        self._send(maps.translations_map(pages, self._known))
        self._send(maps.people_map(pages, self._known, self._secrets))
        self._uids |= asyncio.run(register_pictures(self._owner_url, self._uids[maps.STORAGE]))
        self._send(maps.metadata_map(self._known))
        self._send(maps.references_map(pages, self._known))
        self._send(maps.journal_map(pages, self._known))
        return self._summary(pages)

    @property
    def _known(self) -> maps.Uids:
        return maps.Uids(self._uids)

    def _send(self, datamap: maps.Datamap) -> None:
        answer = self._store.post("/v1/datamap", {"datamap": datamap})
        refused = [entry for entry in answer["entries"] if entry["status"] not in CARRIED_OUT]
        if refused:
            raise DemoLoadError(f"{len(refused)} entries were refused, the first: {refused[:3]}")
        self._uids |= {key: int(uid) for key, uid in answer["placeholders"].items()}

    def _summary(self, pages: list[Page]) -> dict[str, Any]:
        return {
            "pages": {page.title: self._uids[page.key] for page in pages},
            "elements": {
                page.title: [self._uids[maps.element_key(page, index)] for index in range(len(page.elements))]
                for page in pages
            },
            "journal": self._uids[maps.JOURNAL_RECORD],
        }
