"""Small file systems, which tests fill."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.rig import single


@contextmanager
def mount_disk(folder: Path, mebibytes: int, files: int = 0) -> Iterator[Path]:
    """Mount a small file system in a folder, and give its folder; needs root.

    Args:
        folder: where it is.
        mebibytes: its size.
        files: that it may have; 0: any number.
    """
    place = folder / f"disk-{uuid.uuid4().hex[:8]}"
    place.mkdir(parents=True)
    options = f"size={mebibytes}m,nr_inodes={files},mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "small-disk", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@contextmanager
def mount_ext4(folder: Path, mebibytes: int) -> Iterator[Path]:
    """Mount a small ext4 in a folder, for an engine: overlay2 needs a file system of a disk. Give its folder; needs
    root and `scripts/engine/filesystems`."""
    image = folder / f"ext4-{uuid.uuid4().hex[:8]}"
    with image.open("wb") as file:
        file.truncate(mebibytes << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0", image], check=True)
    place = image.with_suffix(".d")
    place.mkdir()
    subprocess.run(["mount", "-o", "loop", image, place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)
        image.unlink()


def write_filling(megabytes: int, run: str = "true") -> str:
    """Return a riseml.yml whose environment, a new one each time, takes some megabytes more than an empty one."""
    step = f'head -c {megabytes}000000 /dev/zero > "${{VIRTUAL_ENV:-}}/content" # {uuid.uuid4().hex}'
    return single(run, install=[step], stop_grace=1)
