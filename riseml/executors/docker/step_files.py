"""The project files that the install steps of an environment may read, as an archive for its first step."""

from __future__ import annotations

import hashlib
from typing import IO

from riseml.base.errors import EngineError, UsageError
from riseml.executors.docker.project_archive import WORKING_FOLDER
from riseml.files.archives.project_files import ProjectFiles
from riseml.files.archives.writer import END, pad_content, write_header
from riseml.model import Image


def write_step_files(archive: IO[bytes], image: Image, project: ProjectFiles | None) -> str:
    """Write the files as a tar; return the digest of their names, modes and contents, whatever their times are.

    Args:
        archive: the binary file to write to.
        image: the environment; `image.files` are the project files that it may read.
        project: its files; None: it has none.

    Raises:
        EngineError: a file is damaged.
    """
    digest = hashlib.sha256()
    if project is not None and image.files:
        try:
            _copy_files(project, frozenset(image.files), archive, digest)
        except UsageError as error:
            raise EngineError(f"the project's files cannot be read: {error.message}", permanent=True) from error
    archive.write(END)
    return digest.hexdigest()


def _copy_files(project: ProjectFiles, paths: frozenset[str], archive: IO[bytes], digest: hashlib._Hash) -> None:
    for entry, content in project.read_files():
        if entry.path in paths:
            digest.update(write_header(entry._replace(mtime=0)))
            archive.write(write_header(entry, below=WORKING_FOLDER))
            for piece in content:
                digest.update(piece)
                archive.write(piece)
            archive.write(pad_content(entry.size))
