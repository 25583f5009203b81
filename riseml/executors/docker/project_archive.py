"""The project as one archive for a container's root.

The engine starts a process for each archive, which takes longer than it unpacks a usual project; so there is only one.
It starts with the working directory, which the engine created for root, and names its owner. Every member is written
again, with the owner of the job that starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from riseml.base.errors import EngineError, UsageError
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.project_files import ProjectFiles
from riseml.files.archives.writer import END, FileOwner, pad_content, write_header
from riseml.job_programs import OWN_FOLDER
from riseml.job_programs.group_shell import HOME_FOLDER
from riseml.model import Owner

WORKING_FOLDER = "code"
"""The working folder of jobs, below the root of their containers."""

_MADE_FOLDERS = (f"{WORKING_FOLDER}/{OWN_FOLDER}", HOME_FOLDER.lstrip("/"))  # else the shell of the job makes them
_PIECE = 1 << 18  # bytes of one piece


def pack_working_directory(
    project: ProjectFiles, owner: Owner, folder: str = WORKING_FOLDER, paths: Collection[str] | None = None
) -> Iterator[bytes]:
    """Yield a tar of a project below a folder, in pieces.

    Args:
        project: its files.
        owner: the owner of the working directory and of everything in it.
        folder: the path of the working directory, below the root.
        paths: the paths of the entries to pack; None: all.

    Raises:
        OSError: the files cannot be read.
        EngineError: a file is damaged.
    """
    buffer = bytearray()
    for piece in _write_members(project, FileOwner(owner.uid, owner.gid), folder, paths):
        buffer += piece
        if len(buffer) >= _PIECE:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)


def _write_members(
    project: ProjectFiles, owner: FileOwner, folder: str, paths: Collection[str] | None
) -> Iterator[bytes]:
    yield write_header(ArchiveEntry(folder, EntryKind.FOLDER), owner)
    if folder == WORKING_FOLDER:
        for path in _MADE_FOLDERS:
            yield write_header(ArchiveEntry(path, EntryKind.FOLDER), owner)
    try:
        for entry, content in project.read_files():
            if paths is not None and entry.path not in paths:
                continue
            yield write_header(entry, owner, folder)
            yield from content
            yield pad_content(entry.size)
    except UsageError as error:
        raise EngineError(f"the project's files cannot be read: {error.message}", permanent=True) from error
    yield END
