from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from remit_contracts.changes import ChangeAction, Coverage, ObservedChangeSet, RecordChange, RefusedWrite

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
payload_like = st.dictionaries(
    st.sampled_from(["changes", "refused", "coverage", "changesOmitted", "witnesses", "later"]), json_values
)


@pytest.mark.req("C-14", "S-72")
@given(json_values | payload_like)
def test_decoding_never_raises(payload: Any) -> None:
    ObservedChangeSet.try_from_event_payload(payload)


@pytest.mark.req("C-14")
def test_an_unreadable_entry_is_skipped_and_the_others_stay() -> None:
    read = ObservedChangeSet.try_from_event_payload(
        {
            "changes": [
                {"table": "pages", "uid": 3, "action": "updated"},
                {"table": "pages", "uid": "x", "action": "updated"},
                {"table": "pages", "uid": 4, "action": "exploded"},
                "junk",
            ],
            "coverage": "datahandler",
        }
    )
    assert read is not None
    assert [change.uid for change in read.changes] == [3]


@pytest.mark.req("C-09", "C-14")
@pytest.mark.parametrize("coverage", ["complete", "", None, 3, ["datahandler"]])
def test_unknown_coverage_reads_as_not_captured(coverage: Any) -> None:
    read = ObservedChangeSet.try_from_event_payload({"changes": [], "coverage": coverage})
    assert read is not None
    assert read.coverage is Coverage.NOT_CAPTURED


@pytest.mark.req("S-72")
def test_a_payload_without_refusals_reads_as_before() -> None:
    read = ObservedChangeSet.try_from_event_payload({"changes": [], "coverage": "datahandler"})
    assert read == ObservedChangeSet()


@pytest.mark.req("C-06", "C-08")
def test_an_entry_has_no_field_for_a_title_a_value_or_visibility() -> None:
    assert set(RecordChange.model_fields) == {
        "table",
        "uid",
        "action",
        "workspace_id",
        "live_uid",
        "language",
        "write_target",
        "hidden",
        "starttime",
        "endtime",
        "fe_group",
        "relation",
    }


@pytest.mark.req("C-01", "C-20", "S-71")
@pytest.mark.parametrize(
    ("observed", "worth"),
    [
        (ObservedChangeSet(), False),
        (ObservedChangeSet(changes=(RecordChange(table="pages", uid=1, action=ChangeAction.UPDATED),)), True),
        (ObservedChangeSet(refused=(RefusedWrite(operation="update", table="pages", reason="outside_scope"),)), True),
        (ObservedChangeSet(coverage=Coverage.NOT_CAPTURED), True),
        (ObservedChangeSet(changes_omitted=1), True),
    ],
)
def test_which_lists_are_worth_a_step(observed: ObservedChangeSet, worth: bool) -> None:
    assert observed.worth_a_step is worth


@pytest.mark.req("C-13", "S-72")
def test_a_stored_entry_keeps_keys_of_a_later_version() -> None:
    stored = {"table": "pages", "uid": 3, "action": "updated", "later": {"a": 1}}
    assert RecordChange.model_validate(stored).model_dump(mode="json")["later"] == {"a": 1}
