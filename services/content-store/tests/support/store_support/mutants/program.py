"""Runs the scope's tests against every mutant of its rules and says which test kills which.

It takes the servers the tests take, keeps what it found in build/mutants, and writes docs/mutants.md when every mutant
was run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import Final

import pytest

from store_support.mutants.memory import ROOT, TESTS, Memory
from store_support.mutants.mutation import MODULES, Mutant, mutants_of
from store_support.mutants.report import EQUIVALENT, Verdict, write_report
from store_support.mutants.runner import MutantRunner, Player, ReachRecorder

MEMORY: Final = ROOT / "build" / "mutants"
REPORT: Final = ROOT / "docs" / "mutants.md"
#: Seconds for one test, and for all tests of one mutant.
TEST_TIMEOUT, BUDGET = 30, 180.0


def main() -> int:
    """Run, print, and say with the exit code whether all is well: 1 when a mutant lives on."""
    options = _options()
    mutants = [m for module in options.only or MODULES for m in mutants_of(module) if m.label not in EQUIVALENT]
    mutants = [m for m in mutants if (options.function or "") in m.function]
    if options.part:
        return _part(options, mutants)
    started = time.monotonic()
    memory = Memory(MEMORY, fresh=options.fresh)
    passed = _in_parts(options, "tests")
    sound = _in_parts(options, "mutants") and passed
    found = memory.verdicts()
    verdicts = [Verdict(m, found[m.label]) for m in mutants if m.label in found]
    living = [verdict for verdict in verdicts if verdict.killer is None]
    for verdict in living:
        sys.stdout.write(f"  {verdict}\n")
    whole = len(verdicts) == len(mutants)
    sys.stdout.write(
        f"{len(mutants)} mutants, {len(verdicts) - len(living)} killed, {len(living)} live on, "
        f"{len(mutants) - len(verdicts)} not run; {time.monotonic() - started:.0f} s\n"
    )
    if sound and whole and not options.only and not options.function:
        write_report(REPORT, verdicts)
    return 0 if sound and whole and verdicts and not living else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MODULES, action="append", help="only the mutants of this module")
    parser.add_argument("--function", help="only those whose function's name has this in it")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes at once")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--random", action="store_true", help="play random calls against those no test kills")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--of", choices=("tests", "mutants"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_parts(options: argparse.Namespace, what: str) -> bool:
    """Let so many processes do a part each; true when all of them ended well."""
    arguments = [f"--only={module}" for module in options.only or ()]
    arguments += [f"--function={options.function}"] if options.function else []
    arguments += ["--random"] if options.random else []
    program = str(TESTS / "mutants")
    started = [
        subprocess.Popen([sys.executable, program, *arguments, "--of", what, "--part", f"{n}/{options.workers}"])
        for n in range(options.workers)
    ]
    codes = [process.wait() for process in started]
    return not any(codes)


def _part(options: argparse.Namespace, mutants: list[Mutant]) -> int:
    number, parts = (int(text) for text in options.part.split("/"))
    memory = Memory(MEMORY)
    player: Player
    if options.of == "tests":
        player = ReachRecorder(memory, (number, parts))
    else:
        known = memory.verdicts()
        living = [m for m in mutants if known.get(m.label) is None and (options.random or m.label not in known)]
        if not (own := living[number::parts]):
            return 0
        player = MutantRunner(memory, own, BUDGET, random_calls=options.random)
    os.environ.setdefault("REMIT_FUZZ_CALLS", "300")
    patient = options.random or options.of == "tests"
    arguments = [str(TESTS), "--ignore", str(TESTS / "mutants"), "-m", "not long", "-qq", "--no-summary"]
    arguments += [f"--timeout={BUDGET if patient else TEST_TIMEOUT}", f"--rootdir={ROOT}", f"--confcutdir={ROOT}"]
    code = pytest.main([*arguments, "--override-ini=console_output_style=classic"], plugins=[player])
    return 0 if player.sound and code <= 1 else 2
