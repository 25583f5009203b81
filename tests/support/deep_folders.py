"""Folders in each other, deeper than a path or a recursion may be."""

from __future__ import annotations

import os
from pathlib import Path


def make_deep_folders(folder: Path, depth: int, mode: int = 0o755) -> None:
    """Make `depth` folders in each other below a folder, each beside a file; `mode` is that of each when it is full."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=at)
        os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=at))
        inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.fchmod(at, mode)
        os.close(at)
        at = inner
    os.close(at)
