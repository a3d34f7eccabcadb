"""The hash of a row: what ``expect`` compares and a read hands out (CALLS 1), free of I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from content_store.records.casting import from_database
from content_store.schema.model import TableSchema


def record_hash(table: TableSchema, row: Mapping[str, Any]) -> str:
    """SHA-256, as 64 hexadecimal digits, of all columns of the row but its place among its neighbours.

    ``tstamp`` alone would not do: it has a resolution of one second. A renumbering (S-54) leaves the hash as it is.

    Args:
        table: of the row; only its database columns count, in a fixed order.
        row: as the overlay reader gives it: in a workspace the values of the draft under the uid of the live row.
            Values may be the driver's or already converted.
    """
    left_out = {table.sort_field}
    values = {name: from_database(row[name]) for name in table.db_columns if name in row and name not in left_out}
    content = json.dumps([table.name, values], sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(content.encode("ascii")).hexdigest()
