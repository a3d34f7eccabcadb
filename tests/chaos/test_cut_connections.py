"""The store's connection to PostgreSQL is cut at every statement of a call: the status is never a lie."""

from __future__ import annotations

from collections import Counter
from uuid import uuid4

import pytest
from chaos_support.postgres_proxy import AtPosition, Cut, Where
from chaos_support.stack import ChaosStack
from chaos_support.store_calls import Answer, set_header

MOST = 120


def _lies(chaos: ChaosStack, element: int, header: str, before: int, answer: Answer, resolved: Answer) -> list[str]:
    """What the answers say that the rows do not."""
    stored, entries = chaos.state(element)
    written = stored == header
    found = []
    if entries != before + written:
        found.append("half of it was written")
    if answer.outcome == "committed" and not written:
        found.append("said committed, wrote nothing")
    if answer.outcome == "rolled_back" and written:
        found.append("said rolled_back, wrote it")
    if 400 <= answer.status < 500 and written:
        found.append("refused, wrote it")
    if (resolved.outcome == "committed") is not written or resolved.outcome not in {"committed", "rolled_back"}:
        found.append(f"resolved as {resolved.outcome or resolved}")
    changes = answer.body.get("changes", {}).get("changes", [])
    if bool(changes) is not (answer.outcome == "committed"):
        found.append(f"outcome {answer.outcome} with the list {changes}")
    return found


@pytest.mark.req("S-58", "S-66", "T-23", "V-01")
@pytest.mark.parametrize("where", [Where.BEFORE, Where.AFTER])
def test_a_cut_at_any_statement_of_an_apply(chaos: ChaosStack, where: Where) -> None:
    element = chaos.test.elements("Council Minutes")[1]
    lies: list[str] = []
    ends: Counter[str] = Counter()
    before = chaos.history(element)
    for position in range(1, MOST):
        header, call = f"{where.name} {position}", str(uuid4())
        rule = chaos.postgres_proxy.rule = AtPosition(position, Cut(where))
        body = chaos.calls.body(set_header(element, header), writeTarget={"table": "tt_content", "uid": element})
        answer = chaos.calls.apply(call, body)
        chaos.postgres_proxy.rule = None
        if not rule.used:
            break
        assert rule.fired.wait(10)
        resolved = chaos.calls.resolve(call, body["runId"])
        ends[f"{answer.status} {answer.outcome or answer.code}"] += 1
        told = _lies(chaos, element, header, before, answer, resolved)
        lies += [f"cut {position} {where.name} {rule.sql[:80]!r}: {lie}" for lie in told]
        before += resolved.outcome == "committed"
    else:
        pytest.fail("the call never ended")
    print(f"{where.name}: {sum(ends.values())} cuts, {dict(ends)}")
    assert sum(ends.values()) > 10
    assert lies == []


@pytest.mark.req("S-58")
def test_a_database_that_goes_away_at_the_begin_is_told_as_an_outage(chaos: ChaosStack) -> None:
    element = chaos.test.elements("Council Minutes")[2]
    rule = chaos.postgres_proxy.rule = AtPosition(1, Cut(Where.BEFORE))
    answer = chaos.calls.apply(str(uuid4()), chaos.calls.body(set_header(element, "never")))
    assert rule.used
    assert (answer.status, answer.outcome) in {(503, ""), (200, "rolled_back")}, answer
