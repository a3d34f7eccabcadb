"""Says which test kills which mutant of the scope's rules: ``python services/content-store/tests/scope/mutants``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

from store_support.mutants.program import main

if __name__ == "__main__":
    raise SystemExit(main())
