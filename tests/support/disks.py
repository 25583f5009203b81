"""Small file systems, which tests fill."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mount_disk(folder: Path, mebibytes: int) -> Iterator[Path]:
    """Mount a small file system in a folder, and give its folder; needs root."""
    place = folder / f"disk-{uuid.uuid4().hex[:8]}"
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=755", "small-disk", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)
