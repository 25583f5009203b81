"""Whether files of a server that goes on have a secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def read_files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield each file below a folder with its content; the server may remove files meanwhile."""
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.read_bytes()


def find_files_with(secret: str, home: Path, *left_out: str) -> list[Path]:
    """Return the files below a home with a text.

    Args:
        secret: the text.
        home: of a server.
        left_out: names of files, and of folders at any depth, that are not searched.
    """
    return [path for path, data in read_files(home) if secret.encode() in data and not set(left_out) & set(path.parts)]
