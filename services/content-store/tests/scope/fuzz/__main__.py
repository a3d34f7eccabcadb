"""Starts the long run: ``python services/content-store/tests/scope/fuzz --calls 10000 --seed 1``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

from store_support.fuzz.program import main

if __name__ == "__main__":
    raise SystemExit(main())
