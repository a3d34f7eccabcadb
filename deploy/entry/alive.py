"""Health check of a container: ``alive.py http PORT`` asks /readyz, ``alive.py process WORD`` looks for the program."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from pathlib import Path


def ready(port: str) -> bool:
    """Does the service say that it is ready?"""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=3) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def running(word: str) -> bool:
    """Does another process with this word among its arguments run, and is it no zombie?"""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (place / "cmdline").read_bytes().split(b"\0")
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if word.encode() in arguments and b"alive.py" not in b" ".join(arguments) and state != "Z":
            return True
    return False


if __name__ == "__main__":
    kind, value = sys.argv[1:3]
    raise SystemExit(0 if (ready(value) if kind == "http" else running(value)) else 1)
