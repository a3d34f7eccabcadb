from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg
import pytest
from content_store.capture.grouping import group_rows
from content_store.capture.model import CapturedRow, Identity, Operation, Relation
from content_store.capture.reader import take_capture
from content_store.capture.relations import RelationEnds, relation_ends
from content_store.events.records import Origin, append_record_events, record_changes
from content_store.events.repository import InvalidPositionError, list_record_events
from content_store.schema.loader import build_schema
from content_store.schema.model import Schema
from hypothesis import given
from hypothesis import strategies as st
from remit_contracts.changes import ChangeAction
from remit_contracts.events import RecordChanged
from service_kit.outbox import Outbox
from service_kit.statements import StatementCounter

if TYPE_CHECKING:
    Connection = asyncpg.Connection[Any]

ENDS = {"mm": RelationEnds(frozenset({"sys_category"}), frozenset({"pages"}))}
HERE = Identity(pid=1, language=0)
NOW = Origin(at=datetime(2026, 1, 1, tzinfo=UTC))


def actions(*rows: CapturedRow, **known: Any) -> dict[str, str]:
    found = record_changes(group_rows(rows), ENDS, NOW, **known)
    return {f"{change.table}:{change.uid}": change.action.value for change in found}


def test_each_record_is_told_once() -> None:
    rows = [
        CapturedRow("pages", Operation.INSERT, 1, None, HERE),
        CapturedRow("pages", Operation.UPDATE, 1, HERE, HERE),
        CapturedRow("pages", Operation.UPDATE, 2, HERE, HERE),
        CapturedRow("pages", Operation.DELETE, 3, HERE, None),
        CapturedRow("pages", Operation.UPDATE, 4, HERE, Identity(pid=2, language=0)),
    ]
    assert actions(*rows) == {"pages:1": "created", "pages:2": "updated", "pages:3": "deleted", "pages:4": "moved"}


@pytest.mark.req("S-54")
def test_a_renumbering_is_no_event_but_a_move_the_handler_reports_is() -> None:
    row = CapturedRow("pages", Operation.UPDATE, 1, HERE, HERE, False, True)
    assert actions(row) == {}
    assert actions(row, actions={("pages", 1): ChangeAction.MOVED}) == {"pages:1": "moved"}


def test_what_was_made_and_removed_again_is_no_event() -> None:
    made, removed = CapturedRow("a", Operation.INSERT, 1, None, HERE), CapturedRow("a", Operation.DELETE, 1, HERE, None)
    assert actions(made, removed, actions={("a", 1): ChangeAction.CREATED}) == {}


@pytest.mark.req("C-05")
def test_a_record_with_a_change_of_its_own_is_not_marked_as_relation() -> None:
    rows = [
        CapturedRow("mm", Operation.INSERT, relation=Relation(4, 1)),
        CapturedRow("pages", Operation.UPDATE, 1, HERE, HERE),
    ]
    found = {c.table: c.relation for c in record_changes(group_rows(rows), ENDS, NOW)}
    assert found == {"pages": False, "sys_category": True}


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (Relation(1, 2, "pages", "categories"), [("sys_category", 1), ("pages", 2)]),
        (Relation(1, 2, "tt_content", "categories"), [("sys_category", 1), ("tt_content", 2)]),
        (Relation(1, 2, "", ""), [("sys_category", 1)]),
        (Relation(0, 2, "pages", ""), [("pages", 2)]),
    ],
)
def test_the_ends_of_a_category_row(schema: Schema, relation: Relation, expected: list[tuple[str, int]]) -> None:
    assert relation_ends(schema)["sys_category_record_mm"].of(relation) == expected


def test_the_ends_of_a_row_without_table_names() -> None:
    groups = {"type": "select", "foreign_table": "tx_b", "MM": "tx_a_mm"}
    sources = [("a", groups), ("b", {"type": "input"})]
    schema = build_schema(
        [(name, {"table": f"tx_{name}", "columns": {"f": {"config": config}}}) for name, config in sources]
    )
    assert relation_ends(schema)["tx_a_mm"].of(Relation(1, 2)) == [("tx_a", 1), ("tx_b", 2)]


async def test_events_are_one_statement_and_are_read_back_by_position(service: Connection, owner: Connection) -> None:
    counter = StatementCounter()
    call = UUID(int=5)
    # The driver asks once per connection what the array types of the outbox's statement are.
    warm_up = service.transaction()
    await warm_up.start()
    await append_record_events(
        service, Outbox(), [RecordChanged(table="a", uid=1, action=ChangeAction.UPDATED, actor=NOW.actor, at=NOW.at)]
    )
    await warm_up.rollback()
    async with service.transaction():
        await service.execute("INSERT INTO public.pages (uid, pid) SELECT n, 1 FROM generate_series(1, 5) AS n")
        counter.attach(service)
        with counter.measure():
            deltas = group_rows(await take_capture(service, None))
            changes = record_changes(deltas, {}, Origin.of_user(3, call_id=call))
            assert await append_record_events(service, Outbox(), changes) == 5
            # Statements are counted by a task of their own.
            await asyncio.sleep(0)
        assert counter.count == 2
    assert await list_record_events(service) == []
    await owner.execute("UPDATE public.outbox SET published_at = clock_timestamp() WHERE subject <> 'pages:5'")
    first = await list_record_events(service, limit=3)
    rest = await list_record_events(service, first[-1].position, limit=3)
    assert sorted(event.change.uid for event in first + rest) == [1, 2, 3, 4]
    assert [event.sequence for event in first + rest] == [1, 1, 1, 1]
    assert first[0].change.actor.user_uid == 3
    assert first[0].change.call_id == call
    assert await list_record_events(service, rest[-1].position) == []


@given(st.text(max_size=60))
async def test_a_position_nobody_gave_out_is_refused(text: str) -> None:
    class Nothing:
        async def fetch(self, query: str, *args: Any) -> list[Any]:
            return []

    try:
        assert await list_record_events(Nothing(), text) == []
    except InvalidPositionError:
        assert text


@pytest.mark.parametrize(
    "text", ["x", "1.", ".", "9" * 30 + "." + "0" * 32, "9" * 18 + "." + "0" * 32, "1." + "z" * 32, "²." + "0" * 32]
)
async def test_nonsense_positions(text: str, service: Connection) -> None:
    with pytest.raises(InvalidPositionError):
        await list_record_events(service, text)
