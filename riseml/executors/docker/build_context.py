"""The build context of an environment: its Dockerfile, and the project files that the install steps may read."""

from __future__ import annotations

import copy
import io
import tarfile
from pathlib import Path
from typing import IO

from riseml.model import Image
from riseml.planning.image import CONTEXT_FOLDER, make_dockerfile

DOCKERFILE = "environment.dockerfile"  # its path in the context; no project file is outside CONTEXT_FOLDER


def write_build_context(context: IO[bytes], image: Image, snapshot: Path | None) -> None:
    """Write the context as a tar.

    Args:
        context: a binary file.
        image: the environment; `image.files` are the project files that it may read.
        snapshot: the project archive; None: the project has no files.
    """
    text = make_dockerfile(image).encode()
    with tarfile.open(fileobj=context, mode="w", format=tarfile.PAX_FORMAT) as target:
        entry = tarfile.TarInfo(DOCKERFILE)
        entry.size = len(text)
        target.addfile(entry, io.BytesIO(text))
        if snapshot is not None and image.files:
            _copy_files(snapshot, frozenset(image.files), target)


def _copy_files(snapshot: Path, wanted: frozenset[str], target: tarfile.TarFile) -> None:
    with tarfile.open(snapshot) as source:
        for member in source:
            if member.name in wanted:
                target.addfile(_move_member(member), source.extractfile(member) if member.isreg() else None)


def _move_member(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return the member below CONTEXT_FOLDER.

    A name that is not ASCII, or too long for its header, is also in the pax headers, which win over `name` when the
    member is written. Without them, tarfile writes new ones. `TarInfo.replace` keeps them, and Python 3.11.2 lacks it.
    """
    moved = copy.copy(member)
    moved.name = f"{CONTEXT_FOLDER}/{member.name}"
    moved.pax_headers = {}
    return moved
