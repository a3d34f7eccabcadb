"""Two calls on the same rows at once: one waits or is told, none is half done."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from chaos_support.stack import ChaosStack
from chaos_support.store_calls import Answer, set_header

ROUNDS = 4


@pytest.mark.req("S-66", "S-57", "S-58")
def test_two_rows_updated_in_opposite_order_never_end_half_done(chaos: ChaosStack) -> None:
    """A deadlock in nearly every round: its victim is repeated, or answers that nothing was changed."""
    first, second = chaos.test.elements("Fees")[:2]
    entries = {uid: chaos.history(uid) for uid in (first, second)}
    committed = 0
    with ThreadPoolExecutor(2) as pool:
        for number in range(ROUNDS):

            def send(order: tuple[int, int], name: str) -> Answer:
                operations = [set_header(uid, name) for uid in order]
                return chaos.calls.apply(str(uuid4()), chaos.calls.body(*operations))

            names = (f"a {number}", f"b {number}")
            answers = list(pool.map(send, [(first, second), (second, first)], names))
            good = [name for name, answer in zip(names, answers, strict=True) if answer.outcome == "committed"]
            told = [a for a in answers if a.outcome == "committed" or a.code in {"locked", "conflict"}]
            assert len(told) == 2, answers
            for answer in answers:
                listed = {c["uid"] for c in answer.body.get("changes", {}).get("changes", [])}
                assert listed == ({first, second} if answer.outcome == "committed" else set()), answer
            headers = {chaos.header(uid) for uid in (first, second)}
            committed += len(good)
            if good:
                assert len(headers) == 1, headers
                assert headers <= set(good)
    assert committed >= ROUNDS
    assert {uid: chaos.history(uid) - entries[uid] for uid in entries} == {first: committed, second: committed}


@pytest.mark.req("T-23", "S-58")
def test_the_same_call_sent_twice_at_once_writes_once(chaos: ChaosStack) -> None:
    element = chaos.test.elements("Fees")[0]
    with ThreadPoolExecutor(4) as pool:
        for number in range(3):
            call, entries = str(uuid4()), chaos.history(element)
            body = chaos.calls.body(set_header(element, f"once {number}"))
            answers = list(pool.map(lambda _, c=call, b=body: chaos.calls.apply(c, b), range(4)))
            assert {a.outcome or a.code for a in answers} <= {"committed", "call_exists", "locked", "conflict"}, answers
            assert "committed" in {a.outcome for a in answers}
            assert chaos.history(element) == entries + 1


@pytest.mark.req("S-66")
def test_a_row_held_by_an_open_call_is_told_as_locked_and_nothing_is_written(chaos: ChaosStack) -> None:
    element = chaos.test.elements("Fees")[1]
    call, entries = str(uuid4()), chaos.history(element)
    opened = chaos.calls.continued(
        call, "operations", chaos.calls.open(call, chaos.calls.body()), set_header(element, "held")
    )
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(chaos.calls.apply, str(uuid4()), chaos.calls.body(set_header(element, "other")))
        answer = other.result()
    # It waited until the open call's limit came, or was told.
    assert answer.outcome == "committed" or answer.code == "locked", answer
    ended = chaos.calls.continued(call, "commit", opened)
    outcomes = (answer.outcome, ended.outcome)
    assert chaos.history(element) == entries + outcomes.count("committed")
    assert ended.outcome == "committed" or ended.status in {404, 410}
