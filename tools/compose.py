"""``make up`` and ``make down``: writes ``deploy/.env`` with random secrets once, then runs docker compose."""

from __future__ import annotations

import argparse
import base64
import os
import re
import secrets
import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from service_kit.auth.keys import SigningKey

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
SERVICES = {
    "content-store": "CONTENT_STORE",
    "agent-runtime": "AGENT_RUNTIME",
    "chat-gateway": "CHAT_GATEWAY",
}
_LINE = re.compile(r'^([A-Za-z_][A-Za-z0-9_]*)="?(.*?)"?$')
_ESCAPED = re.compile(r"\\(.)")


class ComposeError(RuntimeError):
    """Nothing was started; the message says what to do."""


def cluster_id() -> str:
    """An id as Kafka makes them: 16 bytes in base64. None begins with a dash, which its tools would take for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def new_environment() -> dict[str, str]:
    """Every secret of a stack, fresh."""
    values = {
        "POSTGRES_PASSWORD": secrets.token_urlsafe(24),
        "CONTENT_STORE_OWNER_PASSWORD": secrets.token_urlsafe(24),
        "CONTENT_STORE_SERVICE_PASSWORD": secrets.token_urlsafe(24),
        "AGENT_RUNTIME_PASSWORD": secrets.token_urlsafe(24),
        "CHAT_GATEWAY_PASSWORD": secrets.token_urlsafe(24),
        "CONTENT_STORE_CALL_TOKEN_KEY": secrets.token_urlsafe(32),
        "AGENT_RUNTIME_STATE_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
        "KAFKA_CLUSTER_ID": cluster_id(),
        "REMIT_ADMIN_NAME": "admin",
        "REMIT_ADMIN_PASSWORD": secrets.token_urlsafe(18),
    }
    return values | {f"{prefix}_SIGNING_KEY": SigningKey.generate().private_pem() for prefix in SERVICES.values()}


def environment_text(values: Mapping[str, str]) -> str:
    r"""The text of an env file: double quotes, line breaks as ``\\n``."""
    lines = []
    for name, value in values.items():
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("\n", "\\n")
        lines.append(f'{name}="{escaped}"')
    return "".join(f"{line}\n" for line in lines)


def read_environment(text: str) -> dict[str, str]:
    """The values of an env file, by name; the inverse of :func:`environment_text`."""
    found = (_LINE.match(line.strip()) for line in text.splitlines())
    return {m[1]: _ESCAPED.sub(lambda e: "\n" if e[1] == "n" else e[1], m[2]) for m in found if m is not None}


@dataclass(frozen=True)
class Stack:
    """A stack of containers.

    Attributes:
        project: name of the compose project; containers and volumes carry it.
        folder: holds ``.env`` and ``.keys``.
    """

    project: str
    folder: Path

    @property
    def env(self) -> Path:
        """The env file."""
        return self.folder / ".env"

    @property
    def keys(self) -> Path:
        """The services' public keys."""
        return self.folder / ".keys"

    def prepare(self) -> dict[str, str]:
        """Write ``.env``, which only its owner reads, unless it is there; add what it lacks; write the public keys.

        Raises:
            ComposeError: the env file is lost, but a database made with its passwords is still there.
        """
        fresh = new_environment()
        if self.env.exists():
            text = self.env.read_text(encoding="utf-8")
            values = read_environment(text)
            missing = {name: value for name, value in fresh.items() if name not in values}
            if missing:
                ending = "" if text.endswith("\n") or not text else "\n"
                self._write(text + ending + environment_text(missing))
            values |= missing
        else:
            if self._has_data():
                raise ComposeError(
                    f"There is a database of this project, and {self.env}, which holds its passwords, is gone. "
                    "Put the file back, or give up the data: make down VOLUMES=1"
                )
            values = fresh
            self._write(environment_text(values))
            sys.stdout.write(f"Secrets and the administrator's password are in {self.env}.\n")
        self._publish_keys(values)
        return values

    def _write(self, text: str) -> None:
        """Replace the env file as a whole: it is never half written, and never readable by others."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.env.with_name(".env.new")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(self.env)

    def _publish_keys(self, values: Mapping[str, str]) -> None:
        """Public halves, readable by the containers' user whatever the umask is."""
        self.keys.mkdir(exist_ok=True)
        self.keys.chmod(0o755)
        for name, prefix in SERVICES.items():
            file = self.keys / f"{name}.pem"
            file.write_text(SigningKey.from_pem(values[f"{prefix}_SIGNING_KEY"]).public_pem(), encoding="ascii")
            file.chmod(0o644)

    def _has_data(self) -> bool:
        command = ["docker", "volume", "inspect", f"{self.project}_postgres"]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603

    def compose(self, values: Mapping[str, str], *arguments: str) -> int:
        """Run docker compose; EXPOSE=1 adds the published ports. What ``.env`` holds wins over the shell's variables."""
        command = ["docker", "compose", "--project-name", self.project, "--project-directory", str(DEPLOY)]
        command += ["--file", str(DEPLOY / "compose.yaml")]
        if os.environ.get("EXPOSE") == "1":
            command += ["--file", str(DEPLOY / "compose.expose.yaml")]
        if self.env.exists():
            command += ["--env-file", str(self.env)]
        files = {"REMIT_KEYS": self.keys, "REMIT_SETTINGS": self.folder / "settings.env"}
        environment = {**os.environ, **values, **{name: str(path.resolve()) for name, path in files.items()}}
        return subprocess.run([*command, *arguments], check=False, env=environment).returncode  # noqa: S603


def up(stack: Stack) -> int:
    """Build, start and wait until everything is healthy; when it is not, show what the containers say."""
    values = stack.prepare()
    seconds = os.environ.get("WAIT_SECONDS", "300")
    code = stack.compose(values, "up", "--build", "--detach", "--wait", "--wait-timeout", seconds, "--remove-orphans")
    if code != 0:
        stack.compose(values, "ps", "--all")
        stack.compose(values, "logs", "--no-color", "--tail", "15")
        return code
    port = values.get("GATEWAY_PORT") or os.environ.get("GATEWAY_PORT", "8100")
    sys.stdout.write(
        f"Remit answers on http://127.0.0.1:{port} (API documentation: /docs). Log in as "
        f"{values['REMIT_ADMIN_NAME']}; the password is in {stack.env}.\n"
    )
    return 0


def down(stack: Stack) -> int:
    """Stop and remove the containers; VOLUMES=1 removes their data as well."""
    values = read_environment(stack.env.read_text(encoding="utf-8")) if stack.env.exists() else {}
    volumes = ["--volumes"] if os.environ.get("VOLUMES") == "1" else []
    # Compose wants every variable set to read the file, also when it only stops containers.
    unset = dict.fromkeys(new_environment(), "unset")
    return stack.compose(unset | values, "down", "--remove-orphans", *volumes)


def main() -> int:
    """Parse the command line and act."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["up", "down", "env"])
    parser.add_argument("--project", default="remit", help="name of the compose project")
    parser.add_argument("--folder", type=Path, default=DEPLOY, help="where .env and .keys are")
    arguments = parser.parse_args()
    stack = Stack(arguments.project, arguments.folder)
    if shutil.which("docker") is None and arguments.action != "env":
        sys.stderr.write("docker with its compose plugin is needed; without it: make demo\n")
        return 2
    try:
        if arguments.action == "env":
            stack.prepare()
            return 0
        return up(stack) if arguments.action == "up" else down(stack)
    except ComposeError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
