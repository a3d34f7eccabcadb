"""The datamaps that make the demo site, in the order they are sent (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remit_local.demo.people import VISIT_DESK, WEB_DESK, Mounts, groups, page_rights, users
from remit_local.demo.pictures import HEIGHT, WIDTH, pictures
from remit_local.demo.site import Element, Page

Datamap = dict[str, dict[str, dict[str, Any]]]
JOURNAL = "tx_remitdemo_journal"
JOURNAL_PAGE = "Editorial Journal"
VISIT_PAGE = "Visit"
GERMAN = 1
STORAGE, FILE_MOUNT, JOURNAL_RECORD = "NEWstorage", "NEWfilemount", "NEWjournal"


@dataclass(frozen=True)
class Uids:
    """Placeholders of earlier datamaps and the uids they became."""

    of: Mapping[str, int]

    def __getitem__(self, placeholder: str) -> int:
        return self.of[placeholder]


def element_key(page: Page, index: int) -> str:
    """Placeholder of an element."""
    return f"{page.key.replace('page', 'element')}x{index}"


def ground_map() -> Datamap:
    """Groups without their mounts, the file storage and a file mount: what the pages' rights need."""
    desks = {
        key: {name: value for name, value in entry.items() if not name.endswith("mountpoints")}
        for key, entry in groups(Mounts(0, 0, 0)).items()
    }
    return {
        "be_groups": desks,
        "sys_file_storage": {
            STORAGE: {
                "pid": 0, "name": "Pictures", "driver": "Local", "is_browsable": 1, "is_default": 1, "is_writable": 1,
                "is_online": 1,
            }
        },
    }  # fmt: skip


def pages_map(pages: Sequence[Page], uids: Uids) -> Datamap:
    """Every page and its elements in the default language, in their order."""
    page_rows: dict[str, dict[str, Any]] = {}
    element_rows: dict[str, dict[str, Any]] = {}
    latest_below: dict[str, str] = {}
    for page in pages:
        # "-placeholder" puts a row behind another one; a page's uid puts it first.
        before = latest_below.get(page.parent)
        page_rows[page.key] = {
            "pid": f"-{before}" if before else page.parent or 0,
            "title": page.title, "slug": page.slug, "doktype": 1, "hidden": 0,
            "is_siteroot": 0 if page.parent else 1,
            **page_rights(page.access, uids[WEB_DESK], uids[VISIT_DESK]),
        }  # fmt: skip
        latest_below[page.parent] = page.key
        for index, element in enumerate(page.elements):
            key = element_key(page, index)
            element_rows[key] = {
                "pid": f"-{element_key(page, index - 1)}" if index else page.key,
                "CType": "textpic" if element.image else "text", "colPos": 0, "sys_language_uid": 0, "hidden": 0,
                "header": element.header, "bodytext": element.text,
            }  # fmt: skip
    return {"pages": page_rows, "tt_content": element_rows}


def translations_map(pages: Sequence[Page], uids: Uids) -> Datamap:
    """German rows of the pages and elements that are translated."""
    page_rows: dict[str, dict[str, Any]] = {}
    element_rows: dict[str, dict[str, Any]] = {}
    for page in pages:
        if page.german is None:
            continue
        page_rows[f"{page.key}de"] = {
            "pid": uids[page.parent] if page.parent else 0, "title": page.german, "hidden": 0,
            "sys_language_uid": GERMAN, "l10n_parent": uids[page.key], "l10n_source": uids[page.key],
        }  # fmt: skip
        for index, element in enumerate(page.elements):
            if element.german is not None:
                key = element_key(page, index)
                element_rows[f"{key}de"] = _translated(element, page, uids, key)
    return {"pages": page_rows, "tt_content": element_rows}


def _translated(element: Element, page: Page, uids: Uids, key: str) -> dict[str, Any]:
    header, text = element.german or ("", "")
    return {
        "pid": -uids[key], "sys_language_uid": GERMAN, "l18n_parent": uids[key], "l10n_source": uids[key],
        "hidden": 0, "header": header, "bodytext": text,
    }  # fmt: skip


def people_map(pages: Sequence[Page], uids: Uids, secrets: dict[str, str]) -> Datamap:
    """Mounts of the groups, and the two editors."""
    by_title = {page.title: uids[page.key] for page in pages}
    mounts = Mounts(site=uids[pages[0].key], visit=by_title[VISIT_PAGE], files=uids[FILE_MOUNT])
    mounted = {
        str(uids[key]): {name: value for name, value in entry.items() if name.endswith("mountpoints")}
        for key, entry in groups(mounts).items()
    }
    return {
        "be_groups": mounted,
        "be_users": users(uids[WEB_DESK], uids[VISIT_DESK], secrets),
    }  # fmt: skip


def journal_map(pages: Sequence[Page], uids: Uids) -> Datamap:
    """The journal record, which nobody but administrators sees. The last map: from then on changes are counted."""
    page = next(page for page in pages if page.title == JOURNAL_PAGE)
    return {
        JOURNAL: {
            JOURNAL_RECORD: {"pid": uids[page.key], "title": "Translations made here", "entries": 0, "latest": ""}
        }
    }


def mount_map(uids: Uids) -> Datamap:
    """The folder of the pictures, as a file mount of the storage."""
    return {
        "sys_filemounts": {FILE_MOUNT: {"pid": 0, "title": "Pictures", "identifier": f"{uids[STORAGE]}:/pictures/"}}
    }


def metadata_map(uids: Uids) -> Datamap:
    """What the pictures show."""
    return {
        "sys_file_metadata": {
            f"{file_key(picture.name)}meta": {
                "pid": 0, "file": uids[file_key(picture.name)], "title": picture.alternative,
                "alternative": picture.alternative, "width": WIDTH, "height": HEIGHT,
            }
            for picture in pictures()
        }
    }  # fmt: skip


def references_map(pages: Sequence[Page], uids: Uids) -> Datamap:
    """Pictures shown by elements."""
    references: dict[str, dict[str, Any]] = {}
    owners: dict[str, dict[str, Any]] = {}
    for page in pages:
        for index, element in enumerate(page.elements):
            if element.image is None:
                continue
            owner = element_key(page, index)
            key = f"{owner}image"
            references[key] = {
                "pid": uids[page.key], "uid_local": uids[file_key(element.image)], "sys_language_uid": 0, "hidden": 0,
            }  # fmt: skip
            owners[str(uids[owner])] = {"image": key}
    return {"tt_content": owners, "sys_file_reference": references}


def file_key(name: str) -> str:
    """Placeholder of a picture's file record."""
    return f"NEWfile{name.partition('.')[0]}"
