"""The demo's users and groups: an administrator, an editor of the whole site, and one of a part of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ADMIN, EMMA, JONAS = "admin", "emma", "jonas"
WEB_DESK, VISIT_DESK = "NEWgroupweb", "NEWgroupvisit"
ALL_RIGHTS, NO_RIGHTS, SHOW = 31, 0, 1

_PAGE_FIELDS = (
    "hidden", "nav_title", "nav_hide", "subtitle", "description", "abstract", "keywords", "starttime", "endtime",
    "fe_group", "author", "categories", "media", "doktype",
)  # fmt: skip
_CONTENT_FIELDS = (
    "hidden", "subheader", "header_layout", "header_link", "date", "categories", "layout", "frame_class", "starttime",
    "endtime", "fe_group", "imageorient", "imagecols", "sys_language_uid", "l18n_parent", "sectionIndex",
)  # fmt: skip
_REFERENCE_FIELDS = ("title", "description", "alternative", "link", "crop", "hidden", "sys_language_uid")
_KINDS_OF_CONTENT = ("header", "text", "textpic", "image", "textmedia", "bullets", "table", "menu_subpages")


@dataclass(frozen=True)
class Mounts:
    """Where the two desks work: uids of the pages and of the file mount."""

    site: int
    visit: int
    files: int


def groups(mounts: Mounts) -> dict[str, dict[str, Any]]:
    """``be_groups`` entries by placeholder."""
    common = {
        "pid": 0,
        "tables_select": "pages,tt_content,sys_category,sys_file,sys_file_metadata,sys_file_reference",
        "tables_modify": "pages,tt_content,sys_file_reference",
        "pagetypes_select": "1,4,199,254",
        "non_exclude_fields": ",".join(_fields()),
        "explicit_allowdeny": ",".join(f"tt_content:CType:{kind}" for kind in _KINDS_OF_CONTENT),
        "workspace_perms": 1,
    }
    return {
        WEB_DESK: common | {
            "title": "Web desk", "db_mountpoints": str(mounts.site), "file_mountpoints": str(mounts.files),
        },
        # The visit desk has no file mount: pictures are withheld from it.
        VISIT_DESK: common | {"title": "Visit desk", "db_mountpoints": str(mounts.visit), "allowed_languages": "0,1"},
    }  # fmt: skip


def _fields() -> list[str]:
    return [
        *(f"pages:{name}" for name in _PAGE_FIELDS),
        *(f"tt_content:{name}" for name in _CONTENT_FIELDS),
        *(f"sys_file_reference:{name}" for name in _REFERENCE_FIELDS),
    ]


def users(web_desk: int, visit_desk: int, secrets: dict[str, str]) -> dict[str, dict[str, Any]]:
    """``be_users`` entries by placeholder; the administrator is made before by the store's command line."""
    return {
        "NEWuseremma": {
            "pid": 0, "username": EMMA, "password": secrets[EMMA], "realName": "Emma Brandt", "lang": "en",
            "email": "emma@alderbrook.example", "usergroup": f"{web_desk},{visit_desk}", "options": 3, "disable": 0,
        },
        "NEWuserjonas": {
            "pid": 0, "username": JONAS, "password": secrets[JONAS], "realName": "Jonas Keller", "lang": "de",
            "email": "jonas@alderbrook.example", "usergroup": str(visit_desk), "options": 3, "disable": 0,
        },
    }  # fmt: skip


def page_rights(access: str, web_desk: int, visit_desk: int) -> dict[str, int]:
    """The rights of a page by its access word: group and what group and everybody may do."""
    group = {"town": web_desk, "visit": visit_desk, "internal": 0}[access]
    return {
        "perms_groupid": group,
        "perms_group": ALL_RIGHTS if group else NO_RIGHTS,
        "perms_everybody": SHOW if access != "internal" else NO_RIGHTS,
    }
