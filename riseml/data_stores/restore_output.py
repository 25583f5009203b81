"""Restore an output from the files that the manifest in its store names, before the jobs of another attempt start.

A file of the output stays when it is the same as the one in the store, or newer.
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from riseml.base.errors import Conflict, EngineError
from riseml.base.faultpoints import Point, reach
from riseml.base.records import dataclass
from riseml.data_stores.save_manifest import SavedFile
from riseml.data_stores.save_output import SavePlace
from riseml.files.storage_files import ListRequest, StorageFiles
from riseml.job_programs.folder_contents import PART, FileUpload
from riseml.job_programs.folder_paths import FileInfo

_WORKERS = 4  # files at the same time
_RANGE = 8 << 20  # bytes; so much of each worker is in memory
_PROOF = 33  # bytes: see `folder_contents.read_pieces`


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What to restore, and where."""

    files: StorageFiles  # the output
    place: SavePlace
    wants: Callable[[str], bool]  # whether to restore a path
    check: Callable[[], None]  # raises an error when the restoration must end
    progress: Callable[[int, int], None]  # takes the bytes that are there, and all


@dataclass(frozen=True, slots=True)
class Restored:
    """The state of an output before its attempt starts."""

    files: tuple[SavedFile, ...]  # what the manifest names, with the tags of the files that are there
    written: tuple[SavedFile, ...]  # files that came from the store
    kept: int  # files that were there already, and are the same or newer  # names: of the API


def restore_output(request: RestoreRequest) -> Restored:
    """Fill an output; return when every file is there and its checksum is that of the manifest.

    Raises:
        EngineError: the store or the output cannot be used now (or never: permanent).
        RisemlError: `order.check` raised it. The next restoration continues from the files that are there.
    """
    existing_files = _list_output(request)
    requested = [file for file in request.place.manifest.files if request.wants(file.path)]
    total = sum(file.size for file in requested)
    restored = [0]
    lock = threading.Lock()

    def note(size: int) -> None:
        with lock:
            restored[0] += size
            size_so_far = restored[0]
        request.progress(size_so_far, total)

    def restore(file: SavedFile) -> tuple[SavedFile, bool]:
        request.check()
        tag = _find_kept(request, file, existing_files.get(file.path))
        if tag is not None:
            note(file.size)
            return replace(file, tag=tag), False
        new_file = replace(file, tag=_fetch_file(request, file, note).etag)
        reach(Point.OUTPUT_RESTORING)
        return new_file, True

    with ThreadPoolExecutor(_WORKERS, thread_name_prefix="restore") as pool:
        pairs = list(pool.map(restore, requested))
    reach(Point.OUTPUT_RESTORED)
    tags = {file.path: file.tag for file, _ in pairs}
    files = tuple(replace(file, tag=tags.get(file.path, "")) for file in request.place.manifest.files)
    written = tuple(file for file, is_written in pairs if is_written)
    return Restored(files, written, len(pairs) - len(written))


def _list_output(request: RestoreRequest) -> dict[str, FileInfo]:
    """Return the files of the output, after removing the unfinished files of an earlier try."""
    parts = {_name_part(file) for file in request.place.manifest.files}
    files: dict[str, FileInfo] = {}
    after: str | None = None
    while True:
        page = request.files.list_files(ListRequest("", after, deep=True))
        for entry in page.entries:
            if entry.path in parts:
                request.files.remove_files(entry.path, 1)
            else:
                files[entry.path] = entry
        after = page.next
        if after is None:
            return files


def _find_kept(request: RestoreRequest, file: SavedFile, entry: FileInfo | None) -> str | None:
    """Return the tag of a file that stays as it is; an empty tag when the file is newer. None: it must be written."""
    if entry is None or entry.kind != "file":
        return None
    if entry.size == file.size:
        pieces = request.files.read_file(file.path, 0, entry.etag)
        proof = deque(_check_between(request, pieces), maxlen=1).pop()  # holds one piece of the file
        if len(proof) == _PROOF and proof == b"0" + bytes.fromhex(file.sha256):
            return entry.etag
    return "" if entry.mtime > file.changed else None


def _check_between(request: RestoreRequest, pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        request.check()
        yield piece


def _fetch_file(request: RestoreRequest, file: SavedFile, note: Callable[[int], None]) -> FileInfo:
    incoming = FileUpload(file.path, _name_upload(file), file.size, 0, file.changed, file.executable)
    writer = request.files.write_file(incoming)
    try:
        for piece in _read_ranges(request, file):
            writer.write(piece)
            note(len(piece))
        writer.write(bytes.fromhex(file.sha256))
        return writer.finish()
    except Conflict:
        writer.discard()
        text = (
            f"{request.place.address}: what the store has of {file.key!a} is not what was saved: its checksum differs"
        )
        raise EngineError(text, "remove the manifest there to start empty", permanent=True) from None
    except BaseException:
        writer.discard()
        raise
    finally:
        writer.close()


def _read_ranges(request: RestoreRequest, file: SavedFile) -> Iterator[bytes]:
    for start in range(0, file.size, _RANGE):
        request.check()
        stop = min(start + _RANGE, file.size)
        data = request.place.target.read(file.key, start, stop)
        if data is None or len(data) != stop - start:
            text = f"{request.place.address}: {file.key!a}, which the manifest names, is not there as it was saved"
            raise EngineError(text, "remove the manifest there to start empty", permanent=True)
        yield data


def _name_upload(file: SavedFile) -> str:
    return hashlib.sha256(f"restore {file.path}".encode()).hexdigest()[:16]


def _name_part(file: SavedFile) -> str:
    """Return the path of the unfinished file."""
    above, _, _ = file.path.rpartition("/")
    return f"{above}/{PART}{_name_upload(file)}" if above else f"{PART}{_name_upload(file)}"
