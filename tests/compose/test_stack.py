"""The demo's story against the containers of deploy/compose.yaml, with containers killed on the way.

The stack has its own project name, image name, ports and folder of secrets, so it never meets one that somebody uses.
Images come from ``PYTHON_IMAGE``, ``POSTGRES_IMAGE`` and ``KAFKA_IMAGE``, else they are the public ones.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from remit_local.clients import ApiClient, ApiError, ChatClient, card_or_end
from remit_local.demo.reader import ReadEvent, read_events
from remit_local.processes import free_port

ROOT = Path(__file__).resolve().parents[2]
DOCKER = shutil.which("docker") or "docker"
OWN_IMAGE = "remit:compose-test"
LONG_RUNNING = {
    "postgres": 1, "kafka": 1, "content-store": 1, "agent-runtime": 1, "worker": 2, "chat-gateway": 1, "consumer": 1,
}  # fmt: skip
WAIT_SECONDS = 240.0

pytestmark = [pytest.mark.compose, pytest.mark.xdist_group("compose"), pytest.mark.timeout(1200)]


def _docker(*arguments: str) -> str:
    done = subprocess.run([DOCKER, *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"docker {' '.join(arguments)}: {done.stderr.strip()}"
    return done.stdout.strip()


def _until(condition: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.5)


@dataclass(frozen=True)
class Containers:
    """A started stack of containers.

    Attributes:
        project: name of the compose project.
        folder: where its secrets are.
        environment: of ``tools/compose.py``, with the ports.
    """

    project: str
    folder: Path
    environment: dict[str, str]

    def command(self, action: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run ``tools/compose.py`` as the Makefile does."""
        call = [sys.executable, str(ROOT / "tools/compose.py"), action]
        call += ["--project", self.project, "--folder", str(self.folder)]
        return subprocess.run(
            call, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environment | more
        )

    def secret(self, name: str) -> str:
        """A value of the env file."""
        lines = (self.folder / ".env").read_text().splitlines()
        return next(line.partition("=")[2].strip('"') for line in lines if line.startswith(f"{name}="))

    def of(self, service: str) -> list[str]:
        """Ids of a service's containers."""
        label = f"label=com.docker.compose.project={self.project}"
        return _docker(
            "ps", "--all", "--quiet", "--filter", label, "--filter", f"label=com.docker.compose.service={service}"
        ).split()

    def inspect(self, container: str) -> dict[str, Any]:
        """What the engine knows of a container."""
        found: dict[str, Any] = json.loads(_docker("inspect", container))[0]
        return found

    def crash(self, service: str) -> None:
        """End the main process of each container of a service from outside, as a crash would; docker may restart it."""
        pids = [str(self.inspect(container)["State"]["Pid"]) for container in self.of(service)]
        assert "0" not in pids, f"{service} does not run"
        code = "import os, sys; [os.kill(int(pid), 9) for pid in sys.argv[1:]]"
        _docker("run", "--rm", "--pid=host", "--user=0", OWN_IMAGE, "python", "-c", code, *pids)

    def stop_dead(self, service: str) -> None:
        """``docker kill``: dead until somebody starts it, since the engine takes it for a wish."""
        _docker("kill", *self.of(service))

    def start(self, service: str) -> None:
        """Start what ``stop_dead`` ended."""
        _docker("start", *self.of(service))

    def restarts(self, service: str) -> list[int]:
        """How often the engine started each container of a service again."""
        return [int(self.inspect(container)["RestartCount"]) for container in sorted(self.of(service))]

    def healthy(self, service: str) -> bool:
        """Every container of the service runs and says that it is well."""
        states = [self.inspect(container)["State"] for container in self.of(service)]
        return all(state["Running"] and state["Health"]["Status"] == "healthy" for state in states)

    def url(self, port: str) -> str:
        """Address of an API, by the variable of its port."""
        return f"http://127.0.0.1:{self.environment[port]}"

    @contextmanager
    def chat(self) -> Iterator[ChatClient]:
        """The administrator at the gateway."""
        with ChatClient(self.url("GATEWAY_PORT")) as client:
            client.login("admin", self.secret("REMIT_ADMIN_PASSWORD"))
            yield client

    @contextmanager
    def store(self) -> Iterator[ApiClient]:
        """The administrator at the store."""
        with ApiClient(self.url("CONTENT_STORE_PORT")) as client:
            client.login("admin", self.secret("REMIT_ADMIN_PASSWORD"))
            yield client

    def event_of(self, run: str) -> ReadEvent:
        """The first change list of a run, read from the published Kafka port by a consumer of nobody's."""

        def fits(event: ReadEvent) -> bool:
            return event.kind == "tool_changes" and event.run == run

        address = f"kafka://127.0.0.1:{self.environment['KAFKA_PORT']}"
        events = read_events(address, lambda read: any(map(fits, read)), seconds=60)
        return next(event for event in events if fits(event))


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    if shutil.which("docker") is None:
        pytest.skip("no docker command on this machine")
    if subprocess.run([DOCKER, "info"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no Docker engine answers")
    ports = ("GATEWAY_PORT", "KAFKA_PORT", "CONTENT_STORE_PORT", "AGENT_RUNTIME_PORT", "CONSUMER_PORT")
    environment = {
        **os.environ,
        **{name: str(free_port()) for name in ports},
        "GATEWAY_BIND": "127.0.0.1",
        "EXPOSE": "1",
        "REMIT_IMAGE": OWN_IMAGE,
        "AGENT_RUNTIME_LEASE_SECONDS": "5",
    }
    made = Containers(f"remit-test-{os.getpid()}", tmp_path_factory.mktemp("compose"), environment)
    try:
        started = made.command("up")
        if started.returncode != 0:
            pytest.fail(f"the stack did not start:\n{started.stdout[-6000:]}", pytrace=False)
        yield made
    finally:
        ended = made.command("down", VOLUMES="1")
        assert ended.returncode == 0, ended.stdout[-2000:]
        label = f"label=com.docker.compose.project={made.project}"
        assert _docker("ps", "--all", "--quiet", "--filter", label) == ""
        assert _docker("volume", "ls", "--quiet", "--filter", label) == ""


@dataclass(frozen=True)
class Page:
    """A page made for these tests.

    Attributes:
        uid: of the page.
        elements: uids of its elements in their order.
    """

    uid: int
    elements: list[int]


@pytest.fixture(scope="module")
def page(containers: Containers) -> Page:
    """The site's root and a page with three elements, made by the administrator through the store's API."""
    element = {"CType": "text", "colPos": 0, "sys_language_uid": 0, "hidden": 0}
    elements = {
        "NEWa": {**element, "pid": "NEWpage", "header": "By boat"},
        "NEWb": {**element, "pid": "-NEWa", "header": "By train"},
        "NEWc": {**element, "pid": "-NEWb", "header": "On foot"},
    }
    datamap = {
        "pages": {
            "NEWroot": {"pid": 0, "title": "Alderbrook", "slug": "/", "doktype": 1, "is_siteroot": 1, "hidden": 0},
            "NEWpage": {"pid": "NEWroot", "title": "Getting here", "slug": "/here", "doktype": 1, "hidden": 0},
        },
        "tt_content": elements,
    }
    with containers.store() as store:
        answer = store.post("/v1/datamap", {"datamap": datamap})
    assert {entry["status"] for entry in answer["entries"]} == {"written"}, answer["entries"]
    uids = answer["placeholders"]
    assert uids["NEWroot"] == 1, "the site file names page 1"
    return Page(int(uids["NEWpage"]), [int(uids[key]) for key in ("NEWa", "NEWb", "NEWc")])


def _card(chat: ChatClient, conversation: str, text: str) -> dict[str, Any]:
    chat.say(conversation, text)
    view = chat.wait(conversation, card_or_end, WAIT_SECONDS, "the card")
    pending: dict[str, Any] | None = view["pendingApproval"]
    assert pending is not None, view["messages"][-1]["content"]
    return pending


def _ended(chat: ChatClient, conversation: str, digest: str) -> dict[str, Any]:
    view = chat.wait(conversation, lambda view: card_or_end(view, digest), WAIT_SECONDS, "the end of the run")
    assert view["conversation"]["status"] == "completed", view["messages"][-1]["content"]
    return view


def _history(containers: Containers, table: str, uid: int) -> list[dict[str, Any]]:
    with containers.store() as store:
        entries: list[dict[str, Any]] = store.get("/v1/history", table=table, uid=uid)["entries"]
    return entries


def _crash_and_return(containers: Containers, service: str) -> None:
    before = containers.restarts(service)
    containers.crash(service)
    _until(
        lambda: all(now > then for now, then in zip(containers.restarts(service), before, strict=True)),
        f"{service} is started again",
    )


def _well_again(containers: Containers, service: str) -> None:
    _until(lambda: containers.healthy(service), f"{service} is well again")


def test_everything_runs_healthy_without_root_and_only_published_where_asked(containers: Containers) -> None:
    assert (containers.folder / ".env").stat().st_mode & 0o777 == 0o600
    for service, count in LONG_RUNNING.items():
        assert len(containers.of(service)) == count
        assert containers.healthy(service), service
        for container in containers.of(service):
            found = containers.inspect(container)
            assert found["HostConfig"]["RestartPolicy"]["Name"] == "unless-stopped"
            if service not in ("postgres", "kafka"):
                assert found["Config"]["User"] == "remit"
                assert found["HostConfig"]["ReadonlyRootfs"] is True
            published = found["HostConfig"]["PortBindings"] or {}
            assert all(binding["HostIp"] == "127.0.0.1" for bindings in published.values() for binding in bindings)
            if service in ("postgres", "worker"):
                assert published == {}
            # Of its own processes: PostgreSQL's health check is run by the engine as root, and passes by.
            top = [line.split() for line in _docker("top", container, "-eo", "pid,ppid,uid").splitlines()[1:]]
            main = str(found["State"]["Pid"])
            own = [uid for pid, parent, uid in top if main in (pid, parent)]
            assert own
            assert "0" not in own
    (migration,) = containers.of("migrate")
    assert containers.inspect(migration)["State"]["ExitCode"] == 0


def test_the_administrator_logs_in_with_the_password_of_the_env_file_and_no_other(containers: Containers) -> None:
    with containers.chat() as chat:
        assert chat.get("/v1/auth/me")["username"] == "admin"
    with ChatClient(containers.url("GATEWAY_PORT")) as stranger, pytest.raises(ApiError) as refused:
        stranger.login("admin", "admin")
    assert refused.value.status == 401


@pytest.mark.req("T-30", "T-40", "R-093", "R-100", "C-02", "C-08", "T-70")
def test_the_story_goes_on_when_the_workers_are_killed_before_the_decision(containers: Containers, page: Page) -> None:
    with containers.chat() as chat:
        conversation = chat.converse(title="German")
        pending = _card(chat, conversation, f"Translate page {page.uid} to German")
        calls = [call["callId"] for call in pending["calls"]]
        assert len(calls) == 4
        containers.stop_dead("worker")
        decisions = dict.fromkeys(calls, "approve") | {calls[-1]: "decline"}
        chat.decide(conversation, pending["turnDigest"], decisions)
        time.sleep(3)
        assert chat.changes(conversation)["rows"] == [], "nobody is there to carry it out"
        containers.start("worker")
        view = _ended(chat, conversation, pending["turnDigest"])
        assert view["changesAvailable"] is True
        changes = chat.changes(conversation)
    made = [row for row in changes["rows"] if row["action"] == "created"]
    assert sorted(row["table"] for row in made) == ["pages", "tt_content", "tt_content"]
    assert [len(row["calls"]) for row in made] == [1, 1, 1]
    assert changes["counts"]["withheld"] == 0
    assert "coverage" in {note["code"] for note in changes["notes"]}
    for row in made:
        assert len(_history(containers, row["table"], row["uid"])) == 1
    event = containers.event_of(str(pending["run"]))
    assert event.headers["ce_specversion"] == "1.0"
    assert all(row["title"] not in str(event.payload) for row in made)


@pytest.mark.req("T-22", "T-23", "S-58")
def test_a_worker_that_crashes_while_it_writes_comes_back_and_writes_once(containers: Containers, page: Page) -> None:
    titles = ["By ferry", "By tram", "By foot"]
    before = [len(_history(containers, "tt_content", uid)) for uid in page.elements]
    with containers.chat() as chat:
        for uid, title, entries in zip(page.elements, titles, before, strict=True):
            conversation = chat.converse()
            pending = _card(chat, conversation, f"Set the header of element {uid} to {title}")
            chat.decide(conversation, pending["turnDigest"], "approve")
            containers.crash("worker")
            _ended(chat, conversation, pending["turnDigest"])
            rows = [(row["key"], row["action"], len(row["calls"])) for row in chat.changes(conversation)["rows"]]
            assert rows == [(f"tt_content:{uid}", "updated", 1)]
            assert len(_history(containers, "tt_content", uid)) == entries + 1
            _well_again(containers, "worker")
    with containers.store() as store:
        records = [store.get(f"/v1/records/tt_content/{uid}") for uid in page.elements]
    assert [record["record"]["header"] for record in records] == titles


@pytest.mark.req("T-40")
def test_every_container_comes_back_and_a_waiting_card_outlives_them_all(containers: Containers, page: Page) -> None:
    with containers.chat() as chat:
        conversation = chat.converse()
        pending = _card(chat, conversation, f"Set the title of page {page.uid} to How to get here")
        for service in LONG_RUNNING:
            _crash_and_return(containers, service)
            _well_again(containers, service)
        chat.decide(conversation, pending["turnDigest"], "approve")
        _ended(chat, conversation, pending["turnDigest"])
        assert [row["key"] for row in chat.changes(conversation)["rows"]] == [f"pages:{page.uid}"]
    with containers.store() as store:
        assert store.get(f"/v1/records/pages/{page.uid}")["record"]["title"] == "How to get here"
    assert containers.event_of(str(pending["run"])).kind == "tool_changes"
