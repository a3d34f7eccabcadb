"""The stack of these tests: its store talks to PostgreSQL, its runtime to the store, through proxies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from remit_harness.run import TestRun
from remit_harness.servers import BrokerServer
from remit_harness.stacks import TestStack, stack_template, start_stack, stop_stack
from remit_local.clients import ApiClient
from remit_local.processes import Program
from remit_local.services import DEMO_FOLDER, GATEWAY, RUNTIME, STORE, WORKER

from chaos_support.http_proxy import HttpProxy
from chaos_support.postgres_proxy import PostgresProxy
from chaos_support.store_calls import StoreCalls

INSTALLATION = Path(__file__).parents[2] / "installation"
IDLE_SECONDS = 4


@dataclass
class ChaosStack:
    """A running stack and what lies between its programs.

    Attributes:
        test: the stack.
        store_proxy: between runtime and store.
        postgres_proxy: between store and PostgreSQL.
        calls: sends calls as emma.
    """

    test: TestStack
    store_proxy: HttpProxy
    postgres_proxy: PostgresProxy
    calls: StoreCalls = field(init=False)

    def header(self, element: int) -> str:
        """Header of an element as the database has it."""
        return str(self.test.rows(STORE, "SELECT header FROM tt_content WHERE uid = $1", element)[0]["header"])

    def history(self, element: int) -> int:
        """History entries of an element."""
        query = "SELECT count(*) AS n FROM sys_history WHERE tablename = 'tt_content' AND recuid = $1"
        return int(self.test.rows(STORE, query, element)[0]["n"])

    def state(self, element: int) -> tuple[str, int]:
        """Header of an element and how many history entries it has, in one look."""
        query = """
            SELECT c.header, (SELECT count(*) FROM sys_history WHERE tablename = 'tt_content' AND recuid = c.uid) AS n
            FROM tt_content c WHERE c.uid = $1
        """
        (row,) = self.test.rows(STORE, query, element)
        return str(row["header"]), int(row["n"])

    def run(self, run_id: str) -> dict[str, Any]:
        """A run as its owner sees it."""
        return self.runtime(f"/v1/runs/{run_id}")

    def steps(self, run_id: str) -> list[dict[str, Any]]:
        """The steps of a run."""
        return list(self.runtime(f"/v1/runs/{run_id}/events")["steps"])

    def runtime(self, path: str) -> dict[str, Any]:
        """What the runtime answers emma."""
        with self.test.stack.store("emma") as emma, ApiClient(self.test.stack.plan.url(RUNTIME)) as runtime:
            return runtime.send("GET", path, headers={"Authorization": f"Bearer {emma.token}"})

    def second_worker(self) -> Program:
        """Another worker, not started; stop it again."""
        first = self.test.program(WORKER)
        return replace(first, name=f"{WORKER}-second", log=first.log.with_name("second-worker.log"), process=None)

    def calm(self) -> None:
        """No rule, no trap, every program up."""
        self.postgres_proxy.rule = None
        self.store_proxy.clear()
        self.start([program.name for program in self.test.stack.supervisor.programs])

    def kill(self, *names: str) -> None:
        """SIGKILL these programs."""
        for name in names:
            self.test.program(name).kill()

    def start(self, names: Sequence[str]) -> None:
        """Start and wake these programs, all before the first is waited for."""
        dead = [name for name in names if not self.test.program(name).running]
        for name in names:
            self.test.program(name).resume()
        for name in dead:
            self.test.program(name).start()
        for name in dead:
            if name in (STORE, RUNTIME, GATEWAY):
                self.test.stack.wait_ready(name)


def start_chaos(run: TestRun, admin_url: str, broker: BrokerServer, **extra: str) -> ChaosStack:
    """Start it; stop it with :func:`stop_chaos`."""
    store_proxy, postgres_proxy = HttpProxy(), PostgresProxy(admin_url)
    settings = {
        "CONTENT_STORE_OPEN_CALL_IDLE_LIMIT": str(IDLE_SECONDS),
        # One test holds a call for a minute; the limit itself is tested where the clock is the test's.
        "CONTENT_STORE_OPEN_CALL_HARD_LIMIT": "120",
        "PYTHONPATH": os.pathsep.join([str(DEMO_FOLDER / "plugin"), str(INSTALLATION)]),
        **extra,
    }
    test = start_stack(stack_template(run, admin_url, broker), admin_url, broker, extra=settings)
    try:
        plan = test.stack.plan
        store_proxy.upstream = plan.url(STORE)
        # Ports and databases are chosen with the start, so the proxies can come in only now.
        test.program(STORE).environment["CONTENT_STORE_DATABASE_URL"] = postgres_proxy.url(plan.databases.store)
        for name in (RUNTIME, WORKER):
            test.program(name).environment["AGENT_RUNTIME_CONTENT_STORE_URL"] = store_proxy.url
        chaos = ChaosStack(test, store_proxy, postgres_proxy)
        chaos.kill(STORE, RUNTIME, WORKER)
        chaos.start([STORE, RUNTIME, WORKER])
        emma = int(test.rows(STORE, "SELECT uid FROM be_users WHERE username = 'emma'")[0]["uid"])
    except BaseException:
        stop_stack(test, admin_url)
        raise
    chaos.calls = StoreCalls(plan.url(STORE), plan.keys / f"{RUNTIME}.pem", emma)
    return chaos


def stop_chaos(chaos: ChaosStack, admin_url: str) -> None:
    """End the programs, drop the databases, close the proxies."""
    stop_stack(chaos.test, admin_url)
    chaos.store_proxy.close()
    chaos.postgres_proxy.close()
