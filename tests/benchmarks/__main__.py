"""``make bench``: the figures with their limits of the same run, as a table and as build/bench.json.

Nothing here fails because something is slow: the figures are printed whatever they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from apply_update import apply_update
from content_pages import content_pages
from figures import Figure
from remit_harness.run import TestRun
from remit_harness.servers import broker_server, postgres_server, stop_servers
from remit_harness.stacks import stack_template, start_stack, stop_stack
from rich.console import Console
from rich.table import Table
from scope_figures import scope_figures
from step_to_list import step_to_list
from tool_round import tool_round

TARGET = Path(__file__).resolve().parents[2] / "build" / "bench.json"


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="figures against their limits")
    parser.add_argument("--rounds", type=int, default=300, help="repetitions of the quick figures")
    options = parser.parse_args()
    run = TestRun.begin()
    try:
        figures = _measure(run, options.rounds)
    finally:
        stop_servers(run)
        run.end()
    _print(figures)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps({figure.name: figure.as_json() for figure in figures}, indent=2) + "\n")
    return 0


def _measure(run: TestRun, rounds: int) -> list[Figure]:
    postgres, broker = postgres_server(run).url, broker_server(run)
    inside = scope_figures(postgres, run, rounds)
    stack = start_stack(stack_template(run, postgres, broker), postgres, broker)
    try:
        return [
            *inside,
            apply_update(stack, rounds),
            *tool_round(stack, max(rounds // 10, 10)),
            step_to_list(stack, broker, max(rounds // 10, 10)),
            *content_pages(stack, max(rounds // 10, 10)),
        ]
    finally:
        stop_stack(stack, postgres)


def _print(figures: list[Figure]) -> None:
    table = Table(title="figures of this machine, this run")
    for column in ("figure", "ms", "limit ms", "ratio", "goal", "limit is"):
        table.add_column(column, justify="left" if column in ("figure", "limit is") else "right")
    for figure in figures:
        table.add_row(
            figure.name, f"{figure.value_ms:.2f}", f"{figure.limit_ms:.2f}", f"{figure.ratio:.2f}×",
            f"≤ {figure.goal:g}×", figure.limit,
        )  # fmt: skip
    Console(width=140).print(table)
    print(f"written: {TARGET.relative_to(TARGET.parents[1])}")


if __name__ == "__main__":
    sys.exit(main())
