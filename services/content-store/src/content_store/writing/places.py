"""Where a move puts a record so that it is in the order as before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from content_store.records.overlay import VersionState
from content_store.schema.ddl import quote_identifier

if TYPE_CHECKING:
    from content_store.records.gateway import RecordGateway
    from content_store.schema.model import TableSchema
    from content_store.writing.rollback import Place


async def move_target(gateway: RecordGateway, table: TableSchema, row: Mapping[str, Any], place: Place) -> int:
    """Target of the move: minus the uid of the record that comes before that place, or the page to be the first there.

    Args:
        gateway: to read the neighbours with; the answer tells nothing of them.
        table: of the record.
        row: the record; its neighbours are those in its language.
        place: page and number in the order.
    """
    sort = table.sort_field
    if sort is None or place.sorting is None:
        return place.page
    wanted: dict[str, Any] = {"pid": place.page}
    if table.delete_field:
        wanted[table.delete_field] = 0
    if table.language_field:
        wanted[table.language_field] = row.get(table.language_field)
    conditions = [f"{quote_identifier(sort)} < {int(place.sorting)}", f"uid <> {int(row['uid'])}"]
    if table.versionable:
        conditions.append(f"(t3ver_oid = 0 OR t3ver_state = {int(VersionState.MOVED)})")
    before = await gateway.select(
        table.name, wanted, order_by=(f"-{sort}", "uid"), limit=1, extra=" AND ".join(conditions)
    )
    return -int(before[0]["uid"]) if before else place.page
