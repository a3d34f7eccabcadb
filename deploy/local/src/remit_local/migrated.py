"""Whether the databases were brought up to date by exactly this code: then the next start need not ask again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("content_store", "agent_runtime", "chat_gateway", "service_kit")
_MIGRATING = ("migrations", "migration_env", "schema", "capture", "outbox")


def code_fingerprint(folders: Iterable[Path] = ()) -> str:
    """A digest of every file that decides what a migration does; other table files (``folders``) count too."""
    digest = hashlib.sha256()
    for file in sorted(_files(folders)):
        digest.update(str(file).encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _files(folders: Iterable[Path]) -> Iterable[Path]:
    roots = list(folders)
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            continue
        package = Path(spec.origin).parent
        roots += [package / part for part in _MIGRATING]
    for root in roots:
        yield from (file for file in root.rglob("*") if file.suffix in {".py", ".json", ".sql", ".mako"})
