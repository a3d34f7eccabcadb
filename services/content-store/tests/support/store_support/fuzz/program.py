"""``make fuzz``: the long run, on a server of the environment or one of its own."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from remit_harness.databases import Databases
from remit_harness.run import TestRun
from remit_harness.servers import postgres_server, stop_servers
from service_kit.logging import configure_logging

from store_support.calls import build_template, open_test_store
from store_support.fuzz.runner import Fuzz, Tally

SHOWN_PROBLEMS = 10


async def fuzz(databases: Databases, calls: int, seed: int) -> Tally:
    """Run on a database of its own."""
    try:
        url = await databases.create("scope_fuzz")
        await build_template(url)
        store = await open_test_store(url, server_url=databases.admin_url)
        try:
            return await Fuzz(store, seed).run(calls, lambda line: _say(f"… {line}", sys.stderr))
        finally:
            await store.close()
    finally:
        await databases.drop()


def _say(line: str, stream: TextIO) -> None:
    stream.write(f"{line}\n")
    stream.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and say with the exit code whether all is well.

    The last line is ``N calls, E escapes, recall R, precision P``.
    """
    parser = argparse.ArgumentParser(prog="fuzz", description="random calls under random scopes")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randint(1, 10**6))
    options = parser.parse_args(arguments)
    _say(f"seed {options.seed}", sys.stdout)
    configure_logging("scope-fuzz", level="CRITICAL")
    started = time.monotonic()
    run = TestRun.begin()
    try:
        tally = asyncio.run(fuzz(Databases(postgres_server(run).url, run), options.calls, options.seed))
    finally:
        stop_servers(run)
        run.end()
    for problem in tally.problems[:SHOWN_PROBLEMS]:
        sys.stdout.write(f"{problem}\n")
    sys.stdout.write(f"{tally.mix()}\nseed {options.seed}, {time.monotonic() - started:.0f} s\n{tally}\n")
    return 0 if tally.clean else 1
