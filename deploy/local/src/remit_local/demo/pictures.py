"""The demo's picture files: small drawings made here, so that nobody's picture is copied."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

WIDTH, HEIGHT = 320, 180
_SHAPES = {
    "river.svg": ("#9cc5e8", '<path d="M0 120 Q80 80 160 120 T320 120 V180 H0Z" fill="#3a78a8"/>', "The river below the town"),
    "townhall.svg": ("#f2e6cf", '<path d="M60 80 L160 30 L260 80 V160 H60Z" fill="#a65a3a"/>', "The town hall on the square"),
    "passport.svg": ("#e9e9ef", '<rect x="110" y="30" width="100" height="125" rx="6" fill="#7a2338"/>', "A passport"),
    "bins.svg": ("#e4efe0", '<rect x="60" y="60" width="60" height="90" fill="#555"/><rect x="200" y="60" width="60" height="90" fill="#7a5a2c"/>', "A grey and a brown bin"),
    "library.svg": ("#fbf3e1", '<rect x="60" y="40" width="30" height="110" fill="#2c6e63"/><rect x="95" y="50" width="24" height="100" fill="#b8572f"/>', "Books on a shelf"),
    "mill.svg": ("#dfeefa", '<circle cx="160" cy="95" r="50" fill="none" stroke="#6b4a2a" stroke-width="12"/>', "The wheel of the mill"),
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """A picture: file name, content and what it shows."""

    name: str
    content: bytes
    alternative: str

    @property
    def sha1(self) -> str:
        """Fingerprint, as file records keep it."""
        return hashlib.sha1(self.content, usedforsecurity=False).hexdigest()


def pictures() -> list[Picture]:
    """All pictures of the demo site."""
    return [
        Picture(
            name,
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"><title>{alternative}</title>'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{ground}"/>{shape}</svg>\n'.encode(),
            alternative,
        )
        for name, (ground, shape, alternative) in _SHAPES.items()
    ]


def write_pictures(folder: Path) -> None:
    """Lay the files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures():
        (folder / picture.name).write_bytes(picture.content)
