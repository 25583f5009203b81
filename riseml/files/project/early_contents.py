"""The contents of files that the client has not read yet, for a server on the same machine: each file is read once.

For another server, the client hashes all files, asks which contents the server lacks, and reads those files again. For
a server on the same machine, the client writes many unread files to packs while it hashes them, and the server takes
these packs over (`files.project.handed_packs`): that costs less than the second reading, and both processes work at
the same time. The server drops a pack whose contents it has already.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.pieces import RECORD
from riseml.files.project.archive import read_whole_file
from riseml.files.project.file_index import FileIndex
from riseml.files.project.listing import Listing

if TYPE_CHECKING:
    from concurrent.futures import Future

_LEAST = 1 << 23  # bytes of unread files: fewer are sent as quickly after they are hashed
_LARGEST = 1 << 22  # bytes of a file; a larger one is never in memory as a whole
_PART = 1 << 20  # bytes of files that a thread reads before it asks for more
_MOST_THREADS = 8
_BUSY = 0.5  # share of the time in which a thread computes; below it, the thread waits for the disk
_LONG_HASH = 1 << 17  # bytes of a file; while one thread hashes such a file, another one gets on


class EarlyContents:
    """The unread files of a listing, on their way to the server.

    Args:
        listing: of the project.
        index: the one with which the files were listed; it gets the hashes of the files that are read.

    Example:
        early = EarlyContents(listing, index)
        hand_over_packs(early.pack(), settings.snapshots / INCOMING, client)
        snapshot = take_snapshot(early.name_entries(), index)
    """

    def __init__(self, listing: Listing, index: FileIndex) -> None:
        self._listing = listing
        self._index = index
        self._contents: dict[str, str] = {}  # path -> SHA-256 (hex)
        self._packed: set[str] = set()  # SHA-256 (hex)
        self._unread = [
            entry
            for entry in listing.entries
            if not entry.content and entry.kind is EntryKind.FILE and entry.size <= _LARGEST
        ]
        self.size = sum(entry.size for entry in self._unread)  # bytes of the files that are sent

    def are_worth_it(self) -> bool:
        """Return True when there is so much to send that reading it once saves time."""
        return self.size >= _LEAST

    def pack(self) -> Iterator[memoryview]:
        """Yield the records of contents (see `files.archives.pieces`), many at a time. Files with one content mostly
        give one record.

        A file that changes meanwhile is left out and stays unread.

        Raises:
            UsageError: a file cannot be read.
        """
        from concurrent.futures import ThreadPoolExecutor

        parts = _cut_parts(self._unread)
        begun = time.perf_counter()
        used = time.thread_time()
        first = [self._read_part(part) for part in islice(parts, 1)]
        is_waiting = time.thread_time() - used < _BUSY * (time.perf_counter() - begun)
        yield from first
        workers = self._count_readers(is_waiting=is_waiting)
        with ThreadPoolExecutor(workers) as pool:
            running: deque[Future[memoryview]] = deque(
                pool.submit(self._read_part, part) for part in islice(parts, workers + 1)
            )
            while running:
                yield running.popleft().result()
                running.extend(pool.submit(self._read_part, part) for part in islice(parts, 1))

    def _count_readers(self, *, is_waiting: bool) -> int:
        """Return how many threads read: one when small files come from memory, as threads of Python would wait for each
        other.
        """
        if is_waiting:
            return _MOST_THREADS
        return min(os.cpu_count() or 1, _MOST_THREADS) if self.size >= _LONG_HASH * len(self._unread) else 1

    def name_entries(self) -> Listing:
        """Return the listing with the contents of the files that were read."""
        contents = self._contents
        listing = self._listing
        entries = tuple(
            entry._replace(content=contents[entry.path]) if entry.path in contents else entry
            for entry in listing.entries
        )
        return Listing(listing.folder, entries, listing.left_out)

    def _read_part(self, entries: list[ArchiveEntry]) -> memoryview:
        folder = str(self._listing.folder)
        at = 0
        records = memoryview(bytearray(sum(RECORD.size + entry.size for entry in entries)))
        for entry in entries:
            end = at + RECORD.size + entry.size
            content = read_whole_file(folder, entry, self._index, records[at + RECORD.size : end])
            if content:
                self._contents[entry.path] = content
            if content and content not in self._packed:
                self._packed.add(content)
                RECORD.pack_into(records, at, entry.size)
                at = end
        return records[:at]


def _cut_parts(entries: list[ArchiveEntry]) -> Iterator[list[ArchiveEntry]]:
    """Yield the files in parts, for one thread each."""
    part: list[ArchiveEntry] = []
    size = 0
    for entry in entries:
        part.append(entry)
        size += entry.size
        if size >= _PART:
            yield part
            part = []
            size = 0
    if part:
        yield part
