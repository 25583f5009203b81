"""Projects for tests, and what riseml makes of them."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from riseml.files.project.archive import pack_snapshot, take_snapshot
from riseml.files.project.listing import list_project_files


def list_paths(folder: Path) -> list[str]:
    return [entry.path for entry in list_project_files(folder).entries]


def open_tar(folder: Path) -> tarfile.TarFile:
    return tarfile.open(
        fileobj=io.BytesIO(b"".join(pack_snapshot(take_snapshot(list_project_files(folder))))), errors="surrogateescape"
    )


def fill_folder(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)


@contextmanager
def drop_privileges() -> Iterator[None]:
    """Run as another user for a moment, because root may read every file."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
