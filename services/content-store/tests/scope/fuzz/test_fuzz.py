"""A short run of the fuzz, and its control: the oracle sees what a store without the scope's layers lets through."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest
from content_store.calls.testing import TestStore

# The long run is a program of its own (runner.py); CI asks for more here.
CALLS, CONTROL_CALLS = int(os.environ.get("REMIT_FUZZ_CALLS", "200")), 60


def _runner() -> ModuleType:
    # The folder of the run is no package: it is a program that is also looked at here.
    spec = importlib.util.spec_from_file_location("scope_fuzz_runner", Path(__file__).with_name("runner.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.req("S-84", "V-01", "S-42", "S-53")
async def test_no_row_outside_the_scope_ever_differs(store: TestStore) -> None:
    seed = random.SystemRandom().randint(1, 10**6)
    tally = await _runner().run(store, CALLS, seed)
    sys.stdout.write(f"seed {seed}: {tally}\n")
    assert not tally.problems, f"seed {seed}: {tally.problems[:3]}"
    assert tally.changed > 0
    assert (tally.escapes, tally.recall, tally.precision) == (0, 1.0, 1.0)


@pytest.mark.req("S-84")
async def test_control_without_the_layers_rows_escape(store: TestStore) -> None:
    bare = store.with_env(scope_hook=False, effect_check=False)
    tally = await _runner().run(bare, CONTROL_CALLS, 1)
    assert tally.escapes > 0


@pytest.mark.req("S-84", "S-52")
async def test_each_layer_alone_lets_nothing_escape_where_the_database_is_the_witness(store: TestStore) -> None:
    tally = await _runner().run(store.with_env(scope_hook=False), CONTROL_CALLS, 2)
    assert tally.escapes == 0, tally.problems[:3]
