"""English texts of the change list; they are the keys of the catalogues. They claim nothing that is not known (R-082)."""

from __future__ import annotations

from collections.abc import Mapping

COVERAGE = "coverage"
CAPTURE_INCOMPLETE = "captureIncomplete"
OMITTED = "omitted"
WITHHELD = "withheld"
LEGACY_RUNS = "legacyRuns"
UNREADABLE_RUNS = "unreadableRuns"
REFUSED_WRITES = "refusedWrites"
REFUSED_WITHHELD = "refusedWithheld"
UNDONE_CALLS = "undoneCalls"
RUNNING = "running"

NOTES: Mapping[str, str] = {
    COVERAGE: (
        "This list names the changes the content store reported for the steps of this assignment. A change made another "
        "way does not appear here."
    ),
    CAPTURE_INCOMPLETE: "For {count} step(s) the content store could not report every change.",
    OMITTED: "{count} further change(s) are not listed because the list has reached its limit.",
    WITHHELD: "{count} further record(s) are not shown because you may not see them.",
    LEGACY_RUNS: "For {count} run(s) only the records named by the tools are known, not what was changed along with them.",
    UNREADABLE_RUNS: "{count} run(s) could not be read.",
    REFUSED_WRITES: "{count} write(s) were stopped by the scope of this assignment.",
    REFUSED_WITHHELD: "{count} of the stopped writes are not shown because you may not see their records.",
    UNDONE_CALLS: "{count} step(s) were undone as a whole because a write lay outside the scope.",
    RUNNING: "A step is still being worked on; its changes appear when it has ended.",
}
