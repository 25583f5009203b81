"""The build context of an environment: its Dockerfile, and the project files that the install steps may read."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from riseml.archives.entries import ArchiveEntry, EntryKind
from riseml.archives.reader import read_content, read_entries
from riseml.archives.writer import END, pad_content, write_header
from riseml.errors import EngineError, UsageError
from riseml.model import Image
from riseml.planning.image import CONTEXT_FOLDER, make_dockerfile

DOCKERFILE = "environment.dockerfile"  # its path in the context; no project file is outside CONTEXT_FOLDER


def write_build_context(context: IO[bytes], image: Image, snapshot: Path | None, base: str) -> None:
    """Write the context as a tar.

    Args:
        context: a binary file.
        image: the environment; `image.files` are the project files that it may read.
        snapshot: the project archive; None: the project has no files.
        base: the name by which the engine has the base image.

    Raises:
        EngineError: the archive is broken, or cut off.
    """
    text = make_dockerfile(image, base).encode()
    context.write(write_header(ArchiveEntry(DOCKERFILE, EntryKind.FILE, len(text))))
    context.write(text + pad_content(len(text)))
    if snapshot is not None and image.files:
        try:
            _copy_files(snapshot, frozenset(image.files), context)
        except UsageError as error:
            raise EngineError(f"the project's files cannot be read: {error.message}", permanent=True) from error
    context.write(END)


def _copy_files(snapshot: Path, wanted: frozenset[str], context: IO[bytes]) -> None:
    with snapshot.open("rb") as source:
        for entry, at in read_entries(source):
            if entry.path in wanted:
                context.write(write_header(entry, below=CONTEXT_FOLDER))
                context.writelines(read_content(source, at, entry.size))
                context.write(pad_content(entry.size))
