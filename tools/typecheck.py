"""mypy, strict, over every package and its tests.

Each package is a run of its own: test modules of different packages share names, which one run could not tell apart.
Usage: ``python tools/typecheck.py [package …]``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORKERS = 2


def groups() -> dict[str, list[Path]]:
    """Name of a run -> folders it checks."""
    found: dict[str, list[Path]] = {}
    packages = [*ROOT.glob("libs/*"), *ROOT.glob("services/*"), ROOT / "deploy" / "local", ROOT / "tests" / "harness"]
    for package in sorted(packages):
        folders = [package / name for name in ("src", "tests") if (package / name).is_dir()]
        if folders:
            found[package.name] = folders
    found["tools"] = [ROOT / "tools"]
    for folder in sorted((ROOT / "tests").iterdir()):
        if folder.is_dir() and folder.name != "harness" and any(folder.rglob("*.py")):
            found[folder.name] = [folder]
    return found


def check(name: str, folders: list[Path]) -> tuple[str, int, str]:
    """Name, exit code and output of one run. A cache of its own each: runs beside one another would fight for one."""
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache" / name)]
    command += [str(folder.relative_to(ROOT)) for folder in folders]
    # With their folder as a base, test modules are told apart by the folders below it.
    bases = os.pathsep.join(str(folder) for folder in (*(folder / "support" for folder in folders), *folders))
    result = subprocess.run(  # noqa: S603 - our own
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | {"MYPYPATH": bases}
    )
    return name, result.returncode, result.stdout + result.stderr


def main(chosen: list[str]) -> int:
    """Check the chosen packages, or all; 1 when one fails."""
    wanted = {name: folders for name, folders in groups().items() if not chosen or name in chosen}
    if unknown := set(chosen) - set(wanted):
        print(f"no such package: {', '.join(sorted(unknown))}", file=sys.stderr)  # noqa: T201
        return 2
    failed = False
    with ThreadPoolExecutor(WORKERS) as pool:
        for name, code, output in pool.map(lambda item: check(*item), wanted.items()):
            print(f"mypy {name}: {output.strip().splitlines()[-1] if output.strip() else 'no output'}")  # noqa: T201
            if code:
                print(output)  # noqa: T201
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
