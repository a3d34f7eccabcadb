"""A program that opens a call, writes in it, says so, and does nothing more: it waits to be killed."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from chaos_support.store_calls import StoreCalls, set_header

if __name__ == "__main__":
    store, key, user, call, run, element = sys.argv[1:]
    calls = StoreCalls(store, Path(key), int(user))
    opened = calls.continued(
        call, "operations", calls.open(call, calls.body(run=run)), set_header(int(element), "never committed")
    )
    print(opened.body["token"], opened.body["sequence"], flush=True)
    time.sleep(600)
