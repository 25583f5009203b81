"""Copy the files of an output into a store.

Only the changed files are sent. A new file gets its own key at once. A file that the last manifest names is uploaded
under a temporary key, then the new manifest is written, then the file is moved. So a manifest never names a missing or
half-written file.
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace

from riseml.base.errors import Conflict, EngineError, NotFound, Refused
from riseml.base.faultpoints import Point, reach
from riseml.base.records import dataclass
from riseml.data_stores.remote import StoreUnavailable
from riseml.data_stores.save_manifest import (
    ASIDE,
    LARGEST_MANIFEST,
    MANIFEST,
    MOST_FILES,
    SavedFile,
    SaveManifest,
    is_key,
    read_manifest,
    write_manifest,
)
from riseml.data_stores.save_target import SaveTarget
from riseml.files.storage_files import ListRequest, StorageFiles
from riseml.job_programs.folder_contents import PART
from riseml.job_programs.folder_paths import FileInfo, decode_name

_WORKERS = 4  # files at the same time
_ROUNDS = 3  # tries to list an output whose files change meanwhile; after that the files are copied as they are
_LONGEST_KEY = 900  # bytes below the folder of the output: S3 takes 1,024 in all
_NOTED = 2.0  # seconds between two notes of what has arrived
_PROOF = 33  # bytes: see `folder_contents.read_pieces`


class DestinationInUse(EngineError):
    """The place holds the output of another experiment."""


class _ChangedWhileRead(Exception):
    """A file changed, or was removed, while it was read."""


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """What a server knows of an output in a store."""

    named: tuple[SavedFile, ...] = ()  # what the last manifest names
    loose: tuple[SavedFile, ...] = ()  # files that are there and that no manifest names yet
    missing: tuple[str, ...] = ()  # paths whose present content is not in the store
    is_swept: bool = True  # False: the store may still hold files aside that no manifest names


@dataclass(frozen=True, slots=True)
class SavePlace:
    """Where an output goes."""

    address: str  # its address for people
    target: SaveTarget
    manifest: SaveManifest  # what is there


@dataclass(frozen=True, slots=True)
class SaveTask:
    """What to save, and the callbacks that report it."""

    files: StorageFiles  # the output
    open_place: Callable[[], SavePlace]  # finds where it goes, and what is there
    head: SaveManifest  # the manifest without its files
    wants: Callable[[str], bool]  # whether a path is to be saved
    of_jobs: Callable[[str], bool]  # True for a path that jobs write; the server itself writes the others
    note: Callable[[KnownFiles], None]  # receives what is known so far
    progress: Callable[[int, int], None]  # receives the bytes that have arrived, and the bytes of all changed files


@dataclass(frozen=True, slots=True)
class SaveResult:
    """A complete copy."""

    known_files: KnownFiles
    left_out: tuple[tuple[str, str], ...]  # paths that are not in the store, and why


def save_output(task: SaveTask, known_files: KnownFiles) -> SaveResult:
    """Copy an output into its store; return when a manifest names all of it.

    Raises:
        Taken: the place has the output of another experiment.
        EngineError: the store or the output cannot be used now (or never: permanent).
    """
    return _Save(task, known_files).run()


def claim_place(target: SaveTarget, address: str, head: SaveManifest) -> SavePlace:
    """Return a place with its manifest; claim a place without a manifest for this experiment.

    Raises:
        Taken: it is another experiment's.
        EngineError: the store cannot be used.
    """
    data = target.read(MANIFEST, 0, LARGEST_MANIFEST)
    if data is None:
        empty = replace(head, saved_at="", files=())
        content = write_manifest(empty)
        target.write(MANIFEST, len(content), iter([content]))
        return SavePlace(address, target, empty)
    manifest = read_manifest(data, address)
    if manifest.owner != head.owner:
        raise DestinationInUse(
            f"{address} has the output of {manifest.experiment[:100]!a} of another server", permanent=True
        )
    return SavePlace(address, target, manifest)


@dataclass(slots=True)
class _SaveTally:
    """How far a copy is; all its threads use it."""

    progress: Callable[[int, int], None]
    total: int = 0
    sent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, size: int) -> None:
        with self.lock:
            self.sent += size
            sent = self.sent
        self.progress(sent, max(self.total, sent))


class _Save:
    """One copy."""

    def __init__(self, task: SaveTask, known_files: KnownFiles) -> None:
        self._task = task
        self._aside = f"{ASIDE}/{uuid.uuid4().hex[:8]}"
        self._tally = _SaveTally(task.progress)
        self._lock = threading.Lock()
        self._left_out: dict[str, str] = {}
        self._known_files = known_files
        self._before = task.head
        self._target: SaveTarget  # once its place is known
        self._named = {file.path: file for file in known_files.named}
        self._loose = {file.path: file for file in known_files.loose}
        self._missing: set[str] = set()
        self._is_swept = known_files.is_swept
        self._noted_at = time.monotonic()

    def run(self) -> SaveResult:
        """Copy, and write the manifest."""
        files = self._list_files()
        self._missing = {entry.path for entry in files if self._find_file(entry) is None}
        self._note()  # before asking the store, which may not answer
        self._read_manifest()
        if self._is_lost(files):
            return SaveResult(KnownFiles(tuple(self._named.values())), ())
        for number in range(_ROUNDS):
            if number:
                self._left_out.clear()
                files = self._list_files()
            if not self._send_changed(files, exact=number < _ROUNDS - 1):
                break
        reach(Point.OUTPUT_SENT)
        rows = [file for entry in files if (file := self._choose_file(entry)) is not None]
        return SaveResult(self._name_files(rows), tuple(sorted(self._left_out.items())))

    def _read_manifest(self) -> None:
        """Claim the place, and read what its manifest names: a server may have been killed before it noted that."""
        place = self._task.open_place()
        before = place.manifest
        self._target = place.target
        tags = {(file.path, file.sha256): file.tag for file in self._known_files.named}
        loose = {(file.path, file.key, file.sha256): file.tag for file in self._known_files.loose}
        self._before = before
        self._named = {
            file.path: replace(
                file, tag=tags.get((file.path, file.sha256)) or loose.get((file.path, file.key, file.sha256), "")
            )
            for file in before.files
        }
        self._loose = {file.path: file for file in self._known_files.loose if file.key not in before.keys}

    def _is_lost(self, files: Sequence[FileInfo]) -> bool:
        """Return True for an output that has lost every file of its jobs, for example on a replaced disk."""
        has_job_files = any(self._task.of_jobs(entry.path) for entry in files)
        return not has_job_files and any(self._task.of_jobs(path) for path in self._named)

    def _list_files(self) -> list[FileInfo]:
        """Return the files that are wanted and that a store can have, the oldest first.

        A file that names other files, such as TensorFlow's `checkpoint`, is newer than they are.
        """
        files: list[FileInfo] = []
        after: str | None = None
        while True:
            page = self._task.files.list_files(ListRequest("", after, deep=True))
            files += [entry for entry in page.entries if entry.kind != "folder" and self._is_wanted(entry)]
            if len(files) + len(self._left_out) > MOST_FILES:
                text = f"the output has more than {MOST_FILES:,} files"
                raise EngineError(text, "name fewer of them in `only`", permanent=True)
            after = page.next
            if after is None:
                return sorted(files, key=lambda entry: (entry.mtime, entry.path))

    def _is_wanted(self, entry: FileInfo) -> bool:
        path = entry.path
        names = path.split("/")
        if names[-1].startswith(PART) or names[0] in (MANIFEST, ASIDE):
            return False
        text = show_text(path)
        if not self._task.wants(path if text is None else text):
            return False
        if text is None or not is_key(text) or len(text.encode()) > _LONGEST_KEY:
            self._left_out[path] = "no object can have its name"
        elif entry.kind == "link":
            self._left_out[path] = "it is a link, and a store has none"
        elif entry.kind != "file":
            self._left_out[path] = "it is not a regular file"
        else:
            return True
        return False

    def _find_file(self, entry: FileInfo) -> SavedFile | None:
        """Return the object that has the present content of a file; None: there is none."""
        for files in (self._loose, self._named):
            file = files.get(entry.path)
            if file is not None and (file.size, file.tag) == (entry.size, entry.etag):
                return file
        return None

    def _choose_file(self, entry: FileInfo) -> SavedFile | None:
        """Return the object that the manifest names for a file: its present content, else its last whole version.

        A log that grows all the time has no object with its present content: it is longer as soon as it was sent.
        """
        return self._find_file(entry) or self._loose.get(entry.path) or self._named.get(entry.path)

    def _send_changed(self, files: Sequence[FileInfo], *, exact: bool) -> bool:
        """Send the changed files; return True when a file changed meanwhile. The first failure ends the copy."""
        changed = [entry for entry in files if self._find_file(entry) is None]
        self._missing = {entry.path for entry in changed}
        if not changed:
            return False
        self._tally.total = self._tally.sent + sum(entry.size for entry in changed)
        waiting = iter(changed)
        failed = threading.Event()

        def work() -> bool:
            is_restless = False
            while not failed.is_set():
                with self._lock:
                    entry = next(waiting, None)
                if entry is None:
                    break
                try:
                    is_restless |= not self._send_file(entry, exact=exact)
                except BaseException:
                    failed.set()
                    raise
            return is_restless

        with ThreadPoolExecutor(min(_WORKERS, len(changed)), thread_name_prefix="save") as pool:
            workers = [pool.submit(work) for _ in range(min(_WORKERS, len(changed)))]
        self._note()
        return any([worker.result() for worker in workers])

    def _send_file(self, entry: FileInfo, *, exact: bool) -> bool:
        """Send one file; return False when it changed meanwhile, so that nothing was written."""
        text = show_text(entry.path) or entry.path
        key = f"{self._aside}/{text}" if entry.path in self._named else text
        try:
            pieces = self._task.files.read_file(entry.path, 0, entry.etag if exact else None)
            size, tag = next(pieces).decode().split()
            content = _FileContent(pieces, int(size), self._tally)
            self._target.write(key, int(size), iter(content))
        except (_ChangedWhileRead, Conflict, NotFound):
            if not exact:
                self._left_out[entry.path] = "it changes all the time"
            return False
        except Refused as error:
            self._left_out[entry.path] = error.message
            return True
        file = SavedFile(entry.path, int(size), entry.mtime, entry.executable, content.sha256, key, tag)
        with self._lock:
            self._loose[entry.path] = file
            self._missing.discard(entry.path)
            if time.monotonic() - self._noted_at > _NOTED:
                self._note()
        reach(Point.OUTPUT_SENDING)
        return True

    def _name_files(self, rows: Sequence[SavedFile]) -> KnownFiles:
        """Write the manifest, move the files that are aside to their places, and write the manifest again."""
        rows = sorted(rows, key=lambda file: file.path)
        if self._before.saved_at == "" or not _are_same(rows, self._before.files):
            self._write_manifest(rows)
        reach(Point.OUTPUT_NAMED)
        self._loose = {}
        moved = self._move_files(rows)
        if moved:
            rows = [moved.get(file.path, file) for file in rows]
            self._write_manifest(rows)
        if not self._is_swept:
            used = {file.key for file in rows}
            self._target.remove([key for key in self._target.list_keys(ASIDE) if key not in used])
        reach(Point.OUTPUT_SAVED)
        return KnownFiles(tuple(rows))

    def _move_files(self, rows: Sequence[SavedFile]) -> dict[str, SavedFile]:
        """Copy the files that are aside to their places, inside the store. A file that cannot be copied stays aside."""
        moved: dict[str, SavedFile] = {}
        for file in rows:
            text = show_text(file.path) or file.path
            if file.key == text:
                continue
            try:
                self._target.copy(file.key, text)
            except StoreUnavailable:
                raise
            except EngineError:  # Amazon's copies no object of more than 5 GiB
                self._left_out[file.path] = f"it is at {file.key}: the store does not copy it to its place"
                continue
            moved[file.path] = replace(file, key=text)
        return moved

    def _write_manifest(self, rows: Sequence[SavedFile]) -> None:
        self._is_swept = False
        data = write_manifest(replace(self._task.head, files=tuple(rows)))
        self._target.write(MANIFEST, len(data), iter([data]))
        self._named = {file.path: file for file in rows}
        self._note()

    def _note(self) -> None:
        named = self._named.values()
        keys = {file.key for file in named}
        loose = [file for file in self._loose.values() if file.key not in keys]
        self._noted_at = time.monotonic()
        self._task.note(KnownFiles(tuple(named), tuple(loose), tuple(sorted(self._missing)), self._is_swept))


class _FileContent:
    """The content of a file; its proof is checked at the end."""

    def __init__(self, pieces: Iterator[bytes], size: int, tally: _SaveTally) -> None:
        self._pieces = pieces
        self._size = size
        self._tally = tally
        self.sha256 = ""

    def __iter__(self) -> Iterator[bytes]:
        digest = hashlib.sha256()
        left = self._size
        proof = b""
        for piece in self._pieces:
            content = piece[:left]
            tail = piece[left:]
            left -= len(content)
            proof += tail
            if content:
                digest.update(content)
                self._tally.add(len(content))
                yield content
        self.sha256 = digest.hexdigest()
        if left or len(proof) != _PROOF or proof[:1] != b"0" or proof[1:] != digest.digest():
            raise _ChangedWhileRead


def show_text(path: str) -> str | None:
    """Return a path of `folder_paths` as text; None for a path that is not UTF-8."""
    try:
        return decode_name(path).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _are_same(rows: Sequence[SavedFile], before: Sequence[SavedFile]) -> bool:
    return [replace(file, tag="") for file in rows] == [replace(file, tag="") for file in before]
