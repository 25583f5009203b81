"""The build context of an environment: its Dockerfile, and the project files that the install steps may read."""

from __future__ import annotations

from typing import IO

from riseml.archives.entries import ArchiveEntry, EntryKind
from riseml.archives.project_files import ProjectFiles
from riseml.archives.writer import END, pad_content, write_header
from riseml.errors import EngineError, UsageError
from riseml.model import Image
from riseml.planning.image import CONTEXT_FOLDER, make_dockerfile

DOCKERFILE = "environment.dockerfile"  # its path in the context; no project file is outside CONTEXT_FOLDER


def write_build_context(context: IO[bytes], image: Image, project: ProjectFiles | None, base: str) -> None:
    """Write the context as a tar.

    Args:
        context: the binary file to write to.
        image: the environment; `image.files` are the project files that it may read.
        project: its files; None: it has none.
        base: the name by which the engine has the base image.

    Raises:
        EngineError: a file is damaged.
    """
    text = make_dockerfile(image, base).encode()
    context.write(write_header(ArchiveEntry(DOCKERFILE, EntryKind.FILE, len(text))))
    context.write(text + pad_content(len(text)))
    if project is not None and image.files:
        try:
            _copy_files(project, frozenset(image.files), context)
        except UsageError as error:
            raise EngineError(f"the project's files cannot be read: {error.message}", permanent=True) from error
    context.write(END)


def _copy_files(project: ProjectFiles, wanted: frozenset[str], context: IO[bytes]) -> None:
    for entry, content in project.read_files():
        if entry.path in wanted:
            context.write(write_header(entry, below=CONTEXT_FOLDER))
            context.writelines(content)
            context.write(pad_content(entry.size))
