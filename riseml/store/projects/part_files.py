"""Files that are being written: they get their names when they are complete; otherwise they are removed."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from riseml.base.errors import StoreError

FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of the errors of a full disk."""


@contextmanager
def make_part_file(folder: Path) -> Iterator[Path]:
    """Give a new file that is removed at the end unless it was renamed; two clients may upload the same project."""
    descriptor, name = tempfile.mkstemp(dir=folder, suffix=".part")
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def refuse_full_disk(folder: Path) -> Iterator[None]:
    """Raise the errors of a full disk as one of the store.

    Raises:
        StoreError: the disk is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        raise StoreError(
            f"the disk of {folder} is full: the project's files were not taken", "free some space, then run again"
        ) from error
