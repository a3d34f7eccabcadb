"""A short run of the fuzz, and its controls: the oracle sees what a store without the scope's layers lets through."""

from __future__ import annotations

import os
import random
import sys

import pytest
from store_support.calls import TestStore
from store_support.fuzz.runner import Fuzz

# ``make fuzz`` runs as many as one likes; here are few enough for every push.
CALLS, CONTROL_CALLS = int(os.environ.get("REMIT_FUZZ_CALLS", "500")), 60


@pytest.mark.req("S-84", "V-01", "S-42", "S-53")
@pytest.mark.timeout(600)
async def test_no_row_outside_the_scope_ever_differs(store: TestStore) -> None:
    seed = random.SystemRandom().randint(1, 10**6)
    tally = await Fuzz(store, seed).run(CALLS)
    sys.stdout.write(f"seed {seed}: {tally}\n{tally.mix()}\n")
    assert tally.clean, f"seed {seed}: {tally.problems[:3]}"
    assert (tally.escapes, tally.recall, tally.precision) == (0, 1.0, 1.0)
    # A run in which nothing was written, refused or undone would prove nothing.
    assert min(tally.changing, tally.refusing, tally.violating) >= CALLS // 20, tally.mix()


@pytest.mark.req("S-84")
async def test_control_without_the_layers_rows_escape(store: TestStore) -> None:
    bare = store.with_env(scope_hook=False, effect_check=False)
    tally = await Fuzz(bare, 1).run(CONTROL_CALLS)
    assert tally.escapes > 0


@pytest.mark.req("S-84", "S-52")
async def test_without_layer_two_the_verdict_alone_lets_nothing_escape(store: TestStore) -> None:
    tally = await Fuzz(store.with_env(scope_hook=False), 2).run(CONTROL_CALLS)
    assert tally.escapes == 0, tally.problems[:3]


@pytest.mark.req("S-84", "S-53")
async def test_control_without_the_verdict_what_only_the_database_sees_escapes(store: TestStore) -> None:
    tally = await Fuzz(store.with_env(effect_check=False), 3).run(CONTROL_CALLS)
    assert tally.escapes > 0
