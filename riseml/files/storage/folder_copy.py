"""Copy files from one folder of a storage to another: both may be on this machine, on other hosts, or in volumes.

A copy that broke off is made again from its beginning: a file that is there already, with the size and the time of its
source, is complete and stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress

from riseml.base.amounts import format_bytes
from riseml.base.errors import EngineError, NotFound, Refused
from riseml.base.faultpoints import Point, reach
from riseml.base.records import dataclass
from riseml.files.storage_files import ListRequest, StorageFiles, fill_file
from riseml.job_programs.folder_contents import PART, FileUpload
from riseml.job_programs.folder_paths import FileInfo

_PROOF = 33  # bytes: see `folder_contents.read_pieces`
_STABLE = b"0"  # begins the proof of a file that did not change while it was read


@dataclass(frozen=True, slots=True)
class FolderCopy:
    """What to copy, and where."""

    source: StorageFiles
    target: StorageFiles
    wants: Callable[[str], bool]  # whether to copy a path
    check: Callable[[], None]  # raises an error when the copy must end
    progress: Callable[[int, int], None]  # takes the bytes that are there, and all


@dataclass(frozen=True, slots=True)
class CopiedFiles:
    """What a complete copy has."""

    files: int
    size: int  # bytes
    left_out: tuple[str, ...] = ()  # links that lead out of the folder

    def describe(self) -> str:
        """Return `3 files (1.02 MiB)`, and how many links were left out."""
        noun = "file" if self.files == 1 else "files"
        links = "1 link that leads" if len(self.left_out) == 1 else f"{len(self.left_out)} links that lead"
        left_out = f", without {links} out of it" if self.left_out else ""
        return f"{self.files} {noun} ({format_bytes(self.size)}{left_out})"


def copy_folder(request: FolderCopy) -> CopiedFiles:
    """Copy the chosen files and links, and every folder that is above one of them or empty; return when all are there.

    Raises:
        RisemlError: a folder cannot be used now (or never: permanent); or `check` raised it.
    """
    entries = [entry for entry in _list_entries(request.source) if request.wants(entry.path)]
    present = {entry.path: entry for entry in _list_present(request.target)}
    total = sum(entry.size for entry in entries)
    copied = 0
    left_out: list[str] = []
    for entry in entries:
        request.check()
        if entry.kind == "link":
            left_out += _copy_link(request, entry)
        elif entry.kind == "folder":
            request.target.make_folder(entry.path)
        elif entry.kind == "file":
            if not _is_same(entry, present.get(entry.path)):
                _copy_file(request, entry)
            copied += entry.size
            request.progress(copied, total)
            reach(Point.INHERITING)
    reach(Point.INHERITED)
    return CopiedFiles(sum(entry.kind == "file" for entry in entries), total, tuple(left_out))


def _list_entries(files: StorageFiles) -> Iterator[FileInfo]:
    after: str | None = None
    while True:
        page = files.list_files(ListRequest("", after, deep=True))
        yield from page.entries
        after = page.next
        if after is None:
            return


def _list_present(files: StorageFiles) -> Iterator[FileInfo]:
    """Yield what the target has, after removing the unfinished files of an earlier try; a missing one has nothing."""
    entries: list[FileInfo] = []
    with suppress(NotFound):
        entries += _list_entries(files)
    for entry in entries:
        if entry.path.rpartition("/")[2].startswith(PART):
            files.remove_files(entry.path, 1)
        else:
            yield entry


def _is_same(entry: FileInfo, present: FileInfo | None) -> bool:
    return present is not None and (present.kind, present.size, present.mtime) == ("file", entry.size, entry.mtime)


def _copy_link(request: FolderCopy, entry: FileInfo) -> list[str]:
    """Copy a link that leads to a place in the folder; return the path of one that leads out."""
    with suppress(Refused):
        request.target.make_link(entry.path, entry.target or "")
        return []
    return [entry.path]


def _copy_file(request: FolderCopy, entry: FileInfo) -> None:
    name = hashlib.sha256(f"inherit {entry.path}".encode()).hexdigest()[:16]
    upload = FileUpload(entry.path, name, entry.size, 0, entry.mtime, entry.executable)
    try:
        pieces = request.source.read_file(entry.path, 0, entry.etag)
        next(pieces)  # the header has the size and the etag, which are those of `entry`
        writer = request.target.write_file(upload)
    except NotFound as error:
        raise EngineError(error.message, error.hint) from None
    with fill_file(writer):
        for piece in _read_proven(pieces, entry):
            request.check()
            writer.write(piece)


def _read_proven(pieces: Iterator[bytes], entry: FileInfo) -> Iterator[bytes]:
    """Yield the content of a file and its checksum, the end of the proof.

    Raises:
        EngineError: the file changed while it was read.
    """
    last = b""
    for piece in pieces:
        if last:
            yield last
        last = piece
    if len(last) != _PROOF or not last.startswith(_STABLE):
        raise EngineError(f"{entry.path} changed while it was copied", "another program writes there")
    yield last[len(_STABLE) :]
