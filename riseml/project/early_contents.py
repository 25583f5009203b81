"""The contents of files that the client has not read yet, for a server on the same machine: each file is read once.

For another server, the client hashes all files, asks which contents the server lacks, and reads those files again. A
server on the same machine gets many unread files while the client hashes them, and drops what it has already: sending
costs less than the second reading, and both processes work at the same time.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from riseml.archives.entries import ArchiveEntry, EntryKind
from riseml.archives.pieces import PIECE, RECORD
from riseml.project.archive import read_whole_file
from riseml.project.file_index import FileIndex
from riseml.project.listing import Listing

if TYPE_CHECKING:
    from concurrent.futures import Future

_LEAST = 1 << 23  # bytes of unread files: fewer are sent as quickly after they are hashed
_LARGEST = 1 << 22  # bytes of a file; a larger one is never in memory as a whole
_MOST_THREADS = 8


class EarlyContents:
    """The unread files of a listing, on their way to the server.

    Args:
        listing: of the project.
        index: the one with which the files were listed; it gets the hashes of the files that are read.

    Example:
        early = EarlyContents(listing, index)
        client.send_early(early.pack())
        snapshot = take_snapshot(early.name_entries(), index)
    """

    def __init__(self, listing: Listing, index: FileIndex) -> None:
        self._listing = listing
        self._index = index
        self._found: dict[str, str] = {}  # path -> SHA-256 (hex)
        self._unread = [
            one for one in listing.entries if not one.content and one.kind is EntryKind.FILE and one.size <= _LARGEST
        ]
        self.size = sum(one.size for one in self._unread)  # bytes of the files that are sent

    def are_worth_it(self) -> bool:
        """Return True when there is so much to send that reading it once saves time."""
        return self.size >= _LEAST

    def pack(self) -> Iterator[bytes]:
        """Yield the records of contents (see `riseml.archives.pieces`), read side by side.

        A file that changes meanwhile is left out and stays unread.

        Raises:
            UsageError: a file cannot be read.
        """
        from concurrent.futures import ThreadPoolExecutor

        workers = min(os.cpu_count() or 1, _MOST_THREADS)
        parts = _cut_parts(self._unread)
        with ThreadPoolExecutor(workers) as pool:
            running: deque[Future[list[bytes]]] = deque(
                pool.submit(self._read_part, one) for one in islice(parts, workers + 1)
            )
            while running:
                yield from running.popleft().result()
                running.extend(pool.submit(self._read_part, one) for one in islice(parts, 1))

    def name_entries(self) -> Listing:
        """Return the listing with the contents of the files that were read."""
        found, listing = self._found, self._listing
        entries = tuple(one._replace(content=found[one.path]) if one.path in found else one for one in listing.entries)
        return Listing(listing.folder, entries, listing.left_out)

    def _read_part(self, entries: list[ArchiveEntry]) -> list[bytes]:
        records: list[bytes] = []
        for entry in entries:
            read = read_whole_file(self._listing.folder, entry, self._index)
            if read is not None:
                content, self._found[entry.path] = read
                records += (RECORD.pack(entry.size), content)
        return records


def _cut_parts(entries: list[ArchiveEntry]) -> Iterator[list[ArchiveEntry]]:
    """Yield the files in parts, each about as large as a piece of the stream."""
    part: list[ArchiveEntry] = []
    size = 0
    for entry in entries:
        part.append(entry)
        size += entry.size
        if size >= PIECE:
            yield part
            part, size = [], 0
    if part:
        yield part
