"""Fetch the files at an address into the cache.

A file is written in ranges under another name, compared with its size and ETag, and then renamed. The set gets its name
when every file is there. The files of an incomplete set stay, and the next try continues with them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path

from riseml.base.errors import DiskFull, EngineError
from riseml.base.faultpoints import Point, reach
from riseml.base.records import dataclass
from riseml.data_stores.data_cache import DataCache, FileRow
from riseml.data_stores.remote import Remote, RemoteFile, SourceChanged, StoreUnavailable, TransferInterrupted
from riseml.spec.scalars.data_url import DataUrl

PATIENCE = 300.0
"""Seconds without a byte after which a fetch fails."""

_WORKERS = 8  # files at the same time
_RANGE = 8 << 20  # bytes; twice as much of each worker is in memory
_SMALLEST_RANGE = 256 << 10  # bytes; not halved when its connection breaks
_SYNCED = 1 << 20  # bytes; larger files are on the disk before they get their name
_FIRST_PAUSE = 0.5  # seconds
_LONGEST_PAUSE = 15.0
_MOST_CHANGES = 3
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_PIECE = 1 << 20

Progress = Callable[[int, int, str], None]
"""Receives the bytes that have arrived, the bytes in all, and why the fetch is stalled now (empty: it is not)."""


class _Abandoned(EngineError):
    """A file was abandoned because another one failed."""


class _ChecksumMismatch(EngineError):
    """The downloaded bytes do not match the ETag or the checksum that the store names."""


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """What to fetch, and what the caller allows and wants to know."""

    url: DataUrl
    remote: Remote
    limit: int  # bytes of the whole cache
    etag_is_md5: bool  # an ETag that looks like an MD5 must be the one of the content
    stop: threading.Event  # set: the fetch ends as soon as it can
    progress: Progress
    patience: float = PATIENCE
    holder: str = ""  # the user whose keys fetch it, and who alone may have it; empty: everybody
    first_pause: float = _FIRST_PAUSE  # seconds; doubled with each try that brings nothing


@dataclass(slots=True)
class _Tally:
    """How far a fetch is; all its threads use it."""

    request: FetchRequest
    total: int = 0
    received: int = 0
    ahead: int = 1  # ranges of each file that are read before they are needed
    progressed_at: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)
    failed: threading.Event = field(default_factory=threading.Event)

    def add(self, size: int) -> None:
        """Count bytes that have arrived."""
        with self.lock:
            self.progressed_at = time.monotonic()
        self.add_kept(size)

    def add_kept(self, size: int) -> None:
        """Count bytes of an earlier try: they do not show that the store answers."""
        with self.lock:
            self.received += size
            received = self.received
        self.request.progress(received, self.total, "")

    def check(self) -> None:
        """Raise an error when the fetch must end."""
        if self.request.stop.is_set():
            raise EngineError("the fetch was cancelled", permanent=True)


def fetch_set(cache: DataCache, request: FetchRequest, hold: ExitStack) -> Path:
    """Return the folder with the present files of an address; the cache keeps it at least until `hold` ends.

    Raises:
        EngineError: it cannot be had, or `request.stop` was set.
    """
    tally = _Tally(request)
    pause = request.first_pause
    changes = 0
    silent_since: float | None = None  # when the store first did not answer; None: it has answered so far
    while True:
        before = tally.progressed_at
        try:
            files = request.remote.list_files()
            listed = _name_set(request, files)
            hold.enter_context(cache.hold_set(listed.key))
            return _fetch_listed(cache, request, listed, tally)
        except SourceChanged as error:
            changes += 1
            if changes == _MOST_CHANGES:
                raise EngineError(
                    error.message, "retry when no other program writes to that address", permanent=True
                ) from None
        except StoreUnavailable as error:
            if silent_since is None or tally.progressed_at > before:
                silent_since = time.monotonic()
                pause = request.first_pause
            elif time.monotonic() - silent_since > request.patience:
                text = f"{error.message}; nothing came for {request.patience:.0f} s"
                raise EngineError(text, error.hint, permanent=True) from None
            request.progress(tally.received, tally.total, error.message)
            request.stop.wait(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)
        tally.check()


@dataclass(frozen=True, slots=True)
class _Listed:
    """A set as its store lists it."""

    key: str
    files: Sequence[RemoteFile]
    is_lasting: bool  # the key is the same as long as nothing changes there


def _name_set(request: FetchRequest, files: Sequence[RemoteFile]) -> _Listed:
    """Return the set with its key: another one when a path, a size, an ETag or the holder is another one."""
    if not all(file.etag for file in files):  # nothing says whether it is the same: it is fetched each time
        return _Listed(hashlib.sha256(os.urandom(32)).hexdigest()[:32], files, is_lasting=False)
    table: list[object] = [str(request.url), [[file.path, file.size, file.etag] for file in files]]
    if request.holder:
        table.append(request.holder)
    return _Listed(hashlib.sha256(json.dumps(table).encode()).hexdigest()[:32], files, is_lasting=True)


def _fetch_listed(cache: DataCache, request: FetchRequest, listed: _Listed, tally: _Tally) -> Path:
    tally.received = 0
    tally.total = sum(file.size for file in listed.files)
    tally.failed.clear()
    with cache.claim_set(listed.key, request.stop):
        try:
            folder = cache.find_set(listed.key)
            if folder is not None:
                return folder
            part = cache.begin_set(listed.key, tally.total, request.limit)
            rows = _fetch_files(request, listed.files, part, tally)
            reach(Point.DATA_FETCHED)
            return cache.finish_set(listed.key, str(request.url), rows)
        except OSError as error:
            if error.errno in _FULL:
                cache.drop_part(listed.key)
                text = f"no space was left in {cache.folder} while {request.url} was fetched"
                raise DiskFull(text, "free some space there", permanent=True) from None
            raise EngineError(f"{cache.folder} cannot be used: {error.strerror or error}", permanent=True) from None
        finally:
            if not listed.is_lasting:  # no later try would go on with it
                cache.drop_part(listed.key)


def _fetch_files(request: FetchRequest, files: Sequence[RemoteFile], part: Path, tally: _Tally) -> list[FileRow]:
    """Fetch every file, several at the same time; the first failure ends the fetch."""
    waiting = iter(enumerate(files))
    lock = threading.Lock()
    new = part / "new"
    final = part / "files"

    def work() -> list[FileRow]:
        rows: list[FileRow] = []
        while not tally.failed.is_set():
            with lock:
                number, file = next(waiting, (0, None))
            if file is None:
                break
            try:
                rows.append(_fetch_file(request, file, _Place(new / str(number), final / file.path), tally))
            except BaseException:
                tally.failed.set()
                raise
        return rows

    new.mkdir(exist_ok=True, mode=0o700)
    count = min(_WORKERS, len(files))
    tally.ahead = max(1, _WORKERS // (2 * count))  # few files use several connections each; memory is bounded
    with ThreadPoolExecutor(count, thread_name_prefix="fetch") as pool:
        workers = [pool.submit(work) for _ in range(count)]
    errors = [error for worker in workers if (error := worker.exception()) is not None]
    if errors:
        raise next((error for error in errors if not isinstance(error, _Abandoned)), errors[0])
    return sorted((row for worker in workers for row in worker.result()), key=lambda row: row.path)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a file goes."""

    new: Path  # while it is not whole; named by its number in the list, which does not change while the key is the same
    final: Path


def _fetch_file(request: FetchRequest, file: RemoteFile, place: _Place, tally: _Tally) -> FileRow:
    """Fetch a file. When an earlier try has left something else, as after a power cut, the whole file comes again."""
    is_left = place.final.exists() or place.new.exists()
    try:
        return _fetch_rest(request, file, place, tally)
    except _ChecksumMismatch:
        if not is_left:
            raise
    return _fetch_rest(request, file, place, tally)


def _fetch_rest(request: FetchRequest, file: RemoteFile, place: _Place, tally: _Tally) -> FileRow:
    """Fetch what an earlier try has not left of a file."""
    source = place.final if place.final.exists() else place.new
    sha = hashlib.sha256()
    md5 = hashlib.md5(usedforsecurity=False)
    received = 0
    if source.exists():  # an earlier try has left it
        for data in _read_pieces(source):
            sha.update(data)
            md5.update(data)
            received += len(data)
        tally.add_kept(received)
    if source == place.new:
        with open(place.new, "ab") as target:
            for data in _read_ranges(request, file, received, tally):
                target.write(data)
                sha.update(data)
                md5.update(data)
                received += len(data)
                tally.add(len(data))
                reach(Point.DATA_FETCHING)
            if file.size >= _SYNCED:
                target.flush()
                os.fsync(target.fileno())
    if not _is_right(request, file, md5.hexdigest(), received):
        source.parent.chmod(0o700)  # a try that died shortly before its end has left folders that are read-only
        source.unlink()
        tally.add_kept(-received)
        raise _ChecksumMismatch(
            f"{request.url}: what came of {file.path!a} is not what its ETag says",
            "if the store encrypts objects with keys of its own, write `etag_is_md5: false` in stores.yml",
            permanent=True,
        )
    if source == place.new:
        place.final.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.chmod(place.new, 0o444)
        os.rename(place.new, place.final)
    return FileRow(file.path, file.size, place.final.stat().st_mtime_ns, sha.hexdigest())


def _read_ranges(request: FetchRequest, file: RemoteFile, start: int, tally: _Tally) -> Iterator[bytes]:
    """Yield a file from `start` on, range by range. The next ones come while the caller works on the one before."""
    starts = range(start, file.size, _RANGE)

    def read(at: int) -> bytes:
        return _read_range(request, file, range(at, min(at + _RANGE, file.size)), tally)

    if len(starts) < 2:
        yield from map(read, starts)
        return
    with ThreadPoolExecutor(tally.ahead, thread_name_prefix="ahead") as ahead:
        coming = deque(ahead.submit(read, at) for at in starts[: tally.ahead])
        for following in starts[tally.ahead :]:
            data = coming.popleft().result()
            coming.append(ahead.submit(read, following))
            yield data
        while coming:
            yield coming.popleft().result()


def _read_range(request: FetchRequest, file: RemoteFile, span: range, tally: _Tally) -> bytes:
    """Return a range of a file. When the connection breaks, request the range in two halves.

    Some servers and proxies end each connection after a few MiB: the same range would break there each time.
    """
    tally.check()
    if tally.failed.is_set():
        raise _Abandoned("another file of the set failed")
    try:
        return request.remote.read(file, span.start, span.stop)
    except TransferInterrupted:
        if len(span) <= _SMALLEST_RANGE:
            raise
    middle = len(span) // 2
    return b"".join(_read_range(request, file, half, tally) for half in (span[:middle], span[middle:]))


def _is_right(request: FetchRequest, file: RemoteFile, md5: str, size: int) -> bool:
    """Return False when the bytes that are there cannot be what the store has."""
    match = _MD5.fullmatch(file.etag)
    return size == file.size and (match is None or not request.etag_is_md5 or match[1] == md5)


def _read_pieces(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as opened:
        while data := opened.read(_PIECE):
            yield data
