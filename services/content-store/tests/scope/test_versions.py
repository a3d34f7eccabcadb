"""What the scope says of rows with version columns: taken where the run's workspace has them (S-08, S-40, S-47, S-56)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from content_store.records.gateway import RecordGateway
from content_store.scope.checker import AssignmentScopeChecker
from content_store.scope.commands import CommandCheck
from content_store.scope.topology import PageTopology
from remit_contracts.scope import EffectiveAssignmentScope, PageRoot, ScopeReason
from store_support.calls import TestStore

# Content 9 on page 10 has a draft 900 in workspace 1 and a German translation 901 that is only a draft of workspace 2;
# page 1000 is moved to page 11 in workspace 1 (902); page 903 is new below page 10 in workspace 1, content 904 on it.
DRAFTS = """
INSERT INTO tt_content (uid, pid, header, t3ver_oid, t3ver_wsid) VALUES (900, 10, 'draft', 9, 1);
INSERT INTO tt_content (uid, pid, header, sys_language_uid, l18n_parent, t3ver_wsid, t3ver_state)
  VALUES (901, 10, 'Entwurf', 1, 9, 2, 1);
INSERT INTO pages (uid, pid, title, t3ver_oid, t3ver_wsid, t3ver_state) VALUES (902, 11, 'Desk', 1000, 1, 4);
INSERT INTO pages (uid, pid, title, t3ver_wsid, t3ver_state) VALUES (903, 10, 'New', 1, 1);
INSERT INTO tt_content (uid, pid, header, t3ver_wsid, t3ver_state) VALUES (904, 903, 'on it', 1, 1);
INSERT INTO tt_content (uid, pid, header, t3ver_oid, t3ver_wsid) VALUES (905, 20, 'foreign draft', 7, 1)
"""


@pytest.fixture
async def gateway(shared_store: TestStore) -> AsyncIterator[RecordGateway]:
    """Rows of two workspaces, in a transaction that is taken back."""
    async with shared_store.applies.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            await connection.execute(DRAFTS)
            yield RecordGateway(connection, shared_store.env.schema)
        finally:
            await transaction.rollback()


def checker(*roots: tuple[int, int], **values: Any) -> AssignmentScopeChecker:
    return AssignmentScopeChecker(
        EffectiveAssignmentScope(pages=tuple(PageRoot(page=uid, depth=depth) for uid, depth in roots), **values)
    )


async def membership(
    gateway: RecordGateway, scope: AssignmentScopeChecker, table: str, uid: int, workspace: int
) -> ScopeReason | None:
    topology = PageTopology(gateway, workspace)
    places = await topology.load([(table, uid)])
    row = places.get(table, uid)
    assert row is not None
    return scope.membership(row, places)


async def judged(
    gateway: RecordGateway, scope: AssignmentScopeChecker, command: str, uid: int, value: Any, workspace: int
) -> ScopeReason | None:
    check = CommandCheck(scope, PageTopology(gateway, workspace), lambda _name: None)
    verdict = await check.judge(command, "tt_content", uid, value)
    return verdict.reason if verdict is not None else None


@pytest.mark.req("S-08")
async def test_a_page_the_run_made_in_its_draft_is_in_the_tree(gateway: RecordGateway) -> None:
    scope = checker((10, 1))
    assert await membership(gateway, scope, "tt_content", 904, 1) is None
    assert await membership(gateway, checker((10, 0)), "tt_content", 904, 1) is ScopeReason.OUTSIDE_SCOPE
    assert await membership(gateway, scope, "tt_content", 900, 1) is None


@pytest.mark.req("S-08", "S-47")
async def test_a_page_moved_in_a_draft_is_there_for_that_workspace_and_where_it_was_for_every_other(
    gateway: RecordGateway,
) -> None:
    old, new = checker((100, 1)), checker((11, 1))
    outside = ScopeReason.OUTSIDE_SCOPE
    assert [await membership(gateway, old, "pages", 1000, workspace) for workspace in (0, 1, 2)] == [
        None,
        outside,
        None,
    ]
    assert [await membership(gateway, new, "pages", 1000, workspace) for workspace in (0, 1, 2)] == [
        outside,
        None,
        outside,
    ]
    # The move pointer itself, asked for by another workspace, is judged at the live position.
    assert await membership(gateway, old, "pages", 902, 2) is None
    assert await membership(gateway, new, "pages", 902, 2) is outside


@pytest.mark.req("S-47")
@pytest.mark.parametrize("workspace", [0, 1, 2])
async def test_a_translation_that_is_only_a_draft_somewhere_counts_for_every_workspace(
    gateway: RecordGateway, workspace: int
) -> None:
    topology = PageTopology(gateway, workspace)
    assert {row.uid for row in await topology.translations("tt_content", 9)} == {901}
    english = checker((10, 0), languages=(0,))
    assert await judged(gateway, english, "delete", 9, 1, workspace) is ScopeReason.LANGUAGE_NOT_ALLOWED
    assert await judged(gateway, checker((10, 0)), "delete", 9, 1, workspace) is None


PUBLISH = {"action": "publish", "swapWith": 900}


@pytest.mark.req("S-40")
@pytest.mark.parametrize(
    ("command", "uid", "value", "reason"),
    [
        ("undelete", 900, 1, None),
        ("undelete", 905, 1, ScopeReason.OUTSIDE_SCOPE),
        ("discard", 905, 1, ScopeReason.OUTSIDE_SCOPE),
        ("version", 9, PUBLISH, None),
        ("version", 7, {"action": "publish", "swapWith": 905}, ScopeReason.OUTSIDE_SCOPE),
        ("version", 9, {"action": "publish", "swapWith": 905}, ScopeReason.OUTSIDE_SCOPE),
        ("version", 9, {"action": "new"}, None),
        ("version", 9, {"action": "publish", "swapWith": 4711}, ScopeReason.SCOPE_UNRESOLVABLE),
        ("version", 9, 1, ScopeReason.SCOPE_UNRESOLVABLE),
        ("version", 905, {"action": "clearWSID"}, ScopeReason.OUTSIDE_SCOPE),
    ],
)
async def test_undelete_discard_version_and_publish_are_judged_on_the_record(
    gateway: RecordGateway, command: str, uid: int, value: Any, reason: ScopeReason | None
) -> None:
    assert await judged(gateway, checker((10, 0)), command, uid, value, 1) is reason


@pytest.mark.req("S-40")
@pytest.mark.parametrize(
    ("command", "value"), [("discard", 1), ("version", {"action": "clearWSID"}), ("version", {"action": "flush"})]
)
async def test_a_discard_is_judged_on_its_translations_too_and_a_publish_is_not(
    gateway: RecordGateway, command: str, value: Any
) -> None:
    english = checker((10, 0), languages=(0,))
    assert await judged(gateway, english, command, 900, value, 1) is ScopeReason.LANGUAGE_NOT_ALLOWED
    assert await judged(gateway, english, "version", 9, PUBLISH, 1) is None
