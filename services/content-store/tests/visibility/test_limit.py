from __future__ import annotations

import pytest
from content_store.settings import StoreSettings
from remit_contracts.visibility import MAX_VISIBILITY, RecordKey, VisibilityRequest


def test_a_request_has_an_upper_limit() -> None:
    keys = [RecordKey(table="pages", uid=1)] * (MAX_VISIBILITY + 1)
    with pytest.raises(ValueError, match="at most 500"):
        VisibilityRequest(records=keys)
    assert StoreSettings.model_fields["visibility_limit"].default == MAX_VISIBILITY
