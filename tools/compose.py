"""``make up`` and ``make down``: writes ``deploy/.env`` with random secrets once, then runs docker compose."""

from __future__ import annotations

import argparse
import base64
import os
import secrets
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

from service_kit.auth.keys import SigningKey

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
SERVICES = {
    "content-store": "CONTENT_STORE",
    "agent-runtime": "AGENT_RUNTIME",
    "chat-gateway": "CHAT_GATEWAY",
}


def new_environment(keys: Mapping[str, SigningKey]) -> dict[str, str]:
    """Every secret of a stack, fresh."""
    values = {
        "POSTGRES_PASSWORD": secrets.token_urlsafe(24),
        "CONTENT_STORE_OWNER_PASSWORD": secrets.token_urlsafe(24),
        "CONTENT_STORE_SERVICE_PASSWORD": secrets.token_urlsafe(24),
        "AGENT_RUNTIME_PASSWORD": secrets.token_urlsafe(24),
        "CHAT_GATEWAY_PASSWORD": secrets.token_urlsafe(24),
        "CONTENT_STORE_CALL_TOKEN_KEY": secrets.token_urlsafe(32),
        "AGENT_RUNTIME_STATE_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
        "KAFKA_CLUSTER_ID": base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
        "REMIT_ADMIN_NAME": "admin",
        "REMIT_ADMIN_PASSWORD": secrets.token_urlsafe(18),
    }
    return values | {f"{SERVICES[name]}_SIGNING_KEY": key.private_pem() for name, key in keys.items()}


def environment_text(values: Mapping[str, str]) -> str:
    r"""The text of an env file: double quotes, line breaks as ``\\n``."""
    lines = []
    for name, value in values.items():
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("\n", "\\n")
        lines.append(f'{name}="{escaped}"')
    return "\n".join(lines) + "\n"


def prepare(folder: Path) -> None:
    """Write ``.env`` (only its owner reads it) and the public keys, unless they are there."""
    env, public = folder / ".env", folder / ".keys"
    if env.exists():
        return
    keys = {name: SigningKey.generate() for name in SERVICES}
    public.mkdir(exist_ok=True)
    for name, key in keys.items():
        (public / f"{name}.pem").write_text(key.public_pem())
    descriptor = os.open(env, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(environment_text(new_environment(keys)))
    sys.stdout.write(f"Secrets and the administrator's password are in {env.relative_to(ROOT)}.\n")


def compose(*arguments: str) -> int:
    """Run docker compose on this project; EXPOSE=1 adds the published ports."""
    command = ["docker", "compose", "--project-directory", str(DEPLOY), "--env-file", str(DEPLOY / ".env")]
    command += ["--file", str(DEPLOY / "compose.yaml")]
    if os.environ.get("EXPOSE") == "1":
        command += ["--file", str(DEPLOY / "compose.expose.yaml")]
    return subprocess.run([*command, *arguments], check=False).returncode  # noqa: S603


def main() -> int:
    """Parse the command line and act."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["up", "down", "env"])
    action = parser.parse_args().action
    if action == "down":
        prepare(DEPLOY)
        volumes = ["--volumes"] if os.environ.get("VOLUMES") == "1" else []
        return compose("down", "--remove-orphans", *volumes)
    prepare(DEPLOY)
    if action == "env":
        return 0
    code = compose("up", "--build", "--detach", "--wait", "--wait-timeout", "240")
    if code == 0:
        port = os.environ.get("GATEWAY_PORT", "8100")
        sys.stdout.write(f"Remit answers on http://127.0.0.1:{port} (API documentation: /docs). Log in as admin.\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
