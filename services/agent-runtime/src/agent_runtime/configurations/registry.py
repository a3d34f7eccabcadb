"""Configurations from a TOML or JSON file, read again when the file changes: a switch turned on counts at once (S-14)."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from service_kit.logging import get_logger

from agent_runtime.configurations.models import Configuration

logger = get_logger(__name__)
BUILTIN = Configuration(name="default", label="Demo model (no AI)")


class ConfigurationFileError(Exception):
    """The file cannot be used; the text names the place."""


class ConfigurationRegistry:
    """Configurations by name. ``default`` (the demo model) is there unless the file defines one of that name.

    A file that becomes unreadable while the service runs leaves the last good state in force and is logged.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._found: dict[str, Configuration] = {BUILTIN.name: BUILTIN}
        if path is not None:
            self._stamp = _stamp(path)
            self._found = read_file(path)

    def get(self, name: str) -> Configuration | None:
        """The configuration as it is now."""
        self._refresh()
        return self._found.get(name)

    def all(self) -> list[Configuration]:
        """Every configuration, by name."""
        self._refresh()
        return [self._found[name] for name in sorted(self._found)]

    def _refresh(self) -> None:
        if self._path is None:
            return
        stamp = _stamp(self._path)
        if stamp is None or stamp == self._stamp:
            return
        try:
            self._found = read_file(self._path)
        except ConfigurationFileError as error:
            logger.error("configuration file not readable, the last one stays in force", reason=str(error))
        self._stamp = stamp


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def read_file(path: Path) -> dict[str, Configuration]:
    """The configurations of a file: a table ``configurations`` of name → settings.

    Raises:
        ConfigurationFileError: not readable, or a setting is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
        value: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigurationFileError(f"{path}: cannot be read ({type(error).__name__})") from error
    entries = value.get("configurations") if isinstance(value, dict) else None
    if not isinstance(entries, dict):
        raise ConfigurationFileError(f"{path}: has no table configurations")
    found = {BUILTIN.name: BUILTIN}
    for name, settings in entries.items():
        if not isinstance(settings, dict):
            raise ConfigurationFileError(f"{path}: configurations.{name} is no table")
        try:
            found[name] = Configuration.model_validate({**settings, "name": name})
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ConfigurationFileError(f"{path}: configurations.{name}.{place}: {first['msg']}") from error
    return found
