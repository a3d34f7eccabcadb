from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from chat_gateway.access.visibility import Visible
from chat_gateway.changes.merge import MergedRow, StoredFacts
from chat_gateway.changes.observations import Observed
from chat_gateway.changes.presenter import ConversationFacts, present
from gateway_support.store import visible
from remit_contracts.changes import ChangeAction, RefusedWrite
from remit_contracts.conversations import ChangeList
from remit_contracts.visibility import VisibleRecord

CONVERSATION = UUID(int=1)


def row(uid: int, order: int = 0, **values: Any) -> MergedRow:
    facts = values.pop("facts", StoredFacts(uid=uid))
    return MergedRow(
        key=("pages", uid), order=(1, order), action=values.pop("action", ChangeAction.UPDATED), facts=facts, **values
    )


def shown(
    rows: list[MergedRow],
    records: list[VisibleRecord],
    observed: Observed | None = None,
    *,
    tables: dict[str, str] | None = None,
    titles: dict[int, str | None] | None = None,
    limit: int = 100,
    unreadable: int = 0,
    running: bool = False,
) -> ChangeList:
    seen = Visible({(record.table, record.uid): record for record in records}, titles or {0: "Live"})
    facts = ConversationFacts(CONVERSATION, 4, running, unreadable)
    return present({item.key: item for item in rows}, observed or Observed(), seen, tables or {}, facts, str, limit)


@pytest.mark.req("R-093", "R-101")
def test_a_withheld_row_leaves_nothing_but_a_number() -> None:
    found = shown([row(3), row(777)], [visible("pages", 3)])
    assert [item.key for item in found.rows] == ["pages:3"]
    assert found.counts.withheld == 1
    assert "777" not in found.model_dump_json()
    assert [(note.code, note.count) for note in found.notes] == [("coverage", None), ("withheld", 1)]


@pytest.mark.req("R-100", "R-102")
def test_an_empty_list_still_says_what_it_covers() -> None:
    found = shown([], [])
    assert found.rows == ()
    assert [note.code for note in found.notes] == ["coverage"]
    assert "A change made another way does not appear here" in found.notes[0].text


@pytest.mark.req("R-096", "R-081", "A-09", "A-22")
def test_the_limit_comes_after_the_filter_and_keeps_targets() -> None:
    rows = [row(uid, uid, target=uid in {1, 2}) for uid in range(1, 8)]
    records = [visible("pages", uid) for uid in range(1, 7)]
    found = shown(rows, records, Observed(omitted=5), limit=4)
    assert [item.uid for item in found.rows] == [6, 5, 2, 1]
    assert (found.counts.visible, found.counts.omitted, found.counts.withheld) == (4, 2 + 5, 1)
    whole = shown(rows, records, limit=100)
    assert [item.uid for item in whole.rows] == [6, 5, 4, 3, 2, 1]


@pytest.mark.req("R-082", "R-094", "A-15", "A-23")
def test_every_fact_is_a_field_of_its_own() -> None:
    facts = StoredFacts(uid=9, workspace_id=3, live_uid=3, language=1, hidden=False, endtime=99, fe_group="2")
    item = row(3, facts=facts, target=True, failed=True, partial=True)
    record = visible("pages", 9, "Title", language=1, language_title="German", workspace_id=3)
    (found,) = shown([item], [record], titles={3: None}).rows
    assert (found.key, found.uid, found.live_uid, found.title) == ("pages:3", 9, 3, "Title")
    assert found.workspace is not None
    assert (found.workspace.id, found.workspace.title) == (3, None)
    assert found.language is not None
    assert (found.language.id, found.language.title) == (1, "German")
    assert found.hidden is False
    assert found.restrictions is not None
    assert (found.restrictions.start, found.restrictions.end, found.restrictions.groups) == (None, 99, "2")
    assert (found.target, found.failed, found.partial, found.legacy) == (True, True, True, False)
    (plain,) = shown([row(4)], [visible("pages", 4)]).rows
    assert (plain.hidden, plain.language, plain.restrictions) == (None, None, None)


@pytest.mark.req("A-05")
def test_a_version_that_is_gone_is_shown_by_its_live_row() -> None:
    item = row(3, facts=StoredFacts(uid=9, live_uid=3, workspace_id=3))
    assert [found.title for found in shown([item], [visible("pages", 3, "Live row")]).rows] == ["Live row"]
    assert shown([item], []).counts.withheld == 1


@pytest.mark.req("R-103")
def test_links_only_where_they_lead_somewhere() -> None:
    (open_row,) = shown([row(3)], [visible("pages", 3)]).rows
    assert (open_row.links.edit, open_row.links.history) == ("/edit/pages/3", "/history/pages/3")
    (locked,) = shown([row(3)], [visible("pages", 3, may_modify=False)]).rows
    assert (locked.links.edit, locked.links.history) == (None, "/history/pages/3")
    (deleted,) = shown([row(3, action=ChangeAction.DELETED)], [visible("pages", 3)]).rows
    assert (deleted.links.history, deleted.deleted) == (None, True)


@pytest.mark.req("R-098")
def test_refused_writes_pass_the_filter() -> None:
    observed = Observed(
        refused=(
            RefusedWrite(operation="update", table="pages", uid=3, reason="outside_scope"),
            RefusedWrite(operation="update", table="pages", uid=3, reason="outside_scope"),
            RefusedWrite(operation="update", table="pages", uid=777, reason="outside_scope"),
            RefusedWrite(operation="create", table="tt_content", pid=3, reason="outside_scope", undone=True),
            RefusedWrite(operation="create", table="be_secret", pid=3, reason="outside_scope"),
            RefusedWrite(operation="create", table="tt_content", reason="scope_unresolvable"),
        ),
        undone_calls=1,
    )
    found = shown([], [visible("pages", 3, "Home")], observed, tables={"tt_content": "Content"})
    assert [(item.table, item.uid, item.title, item.undone) for item in found.refused] == [
        ("pages", 3, "Home", False),
        ("tt_content", None, None, True),
    ]
    assert found.counts.refused_writes == 6
    counted = {note.code: note.count for note in found.notes}
    assert counted == {"coverage": None, "refusedWrites": 6, "refusedWithheld": 3, "undoneCalls": 1}
    text = found.model_dump_json()
    assert "777" not in text
    assert "be_secret" not in text


@pytest.mark.req("R-101")
def test_each_note_has_its_own_code_and_number_and_zero_has_none() -> None:
    found = shown([], [], Observed(omitted=2, not_captured=3, legacy_runs=4), unreadable=5, running=True)
    assert {note.code: note.count for note in found.notes} == {
        "coverage": None, "captureIncomplete": 3, "omitted": 2, "legacyRuns": 4, "unreadableRuns": 5, "running": None,
    }  # fmt: skip
    assert all("{" not in note.text for note in found.notes)
