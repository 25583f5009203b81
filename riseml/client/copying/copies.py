"""Copy from one side to the other. Files that are at the target already are skipped, and no file is ever incomplete.

Links are copied as links, unless they lead out of the copied folder. No link is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import chain

from riseml.base.errors import Conflict
from riseml.base.records import dataclass
from riseml.client.copying.sides import CopyEndpoint
from riseml.files.path_names import join_paths
from riseml.files.storage_files import MOST_ENTRIES, ListRequest
from riseml.job_programs.folder_contents import PART, FileUpload
from riseml.job_programs.folder_links import leads_inside
from riseml.job_programs.folder_paths import FileInfo

_FIRST_PAGE = 1000
_DIGEST = 32  # bytes of a SHA-256
_TRIES = 3  # tries for a file that changes while it is copied


@dataclass(frozen=True, slots=True)
class CopyLocation:
    """Where a copy begins or ends."""

    side: CopyEndpoint
    path: str
    title: str  # prefix of paths for people: `output://4/`; empty for this machine


@dataclass(slots=True)
class CopyTally:
    """The result of a copy."""

    files: int = 0
    size: int = 0  # bytes of these files
    links: int = 0
    unchanged: int = 0
    left_out: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # files that were not copied, because they changed during each try


@dataclass(frozen=True, slots=True)
class CopyWatch:
    """The callbacks that receive the progress of a copy."""

    note_file: Callable[[str, str, int | None], None]  # source and target for people, bytes; None: a link
    note_bytes: Callable[[int], None]
    note_total: Callable[[int | None], None]  # bytes in all; None: too many files to know
    is_dry: bool = False  # nothing is written


def copy_tree(source: CopyLocation, entry: FileInfo, target: CopyLocation, watch: CopyWatch) -> CopyTally:
    """Copy a file, or a folder with all below it; `found` is what the source is.

    Raises:
        RisemlError: something cannot be read or written. What was copied stays, and is not copied again next time.
    """
    tally = CopyTally()
    for path, below in _list_below(source, entry, watch):
        at = CopyLocation(source.side, join_paths(source.path, path), source.title)
        to = CopyLocation(target.side, join_paths(target.path, path), target.title)
        if below.kind == "folder":
            if not watch.is_dry:
                target.side.make_folder(to.path)
        elif below.kind == "file":
            _copy_file(at, below, to, (watch, tally))
        elif path and below.kind == "link" and leads_inside(path, below.target or ""):
            _copy_link(at, below, to, (watch, tally))
        else:
            tally.left_out.append(f"{at.title}{at.path}")
    return tally


def _list_below(source: CopyLocation, entry: FileInfo, watch: CopyWatch) -> Iterator[tuple[str, FileInfo]]:
    """Yield what is copied, folders before what is in them; the path of the source itself is empty."""
    if entry.kind != "folder":
        watch.note_total(entry.size)
        yield "", entry
        return
    yield "", entry
    limit = _FIRST_PAGE
    after = None
    first = True
    while True:
        page = source.side.list_files(ListRequest(source.path, after, limit, deep=True))
        entries = [entry for entry in page.entries if not entry.path.rpartition("/")[2].startswith(PART)]
        if first:
            watch.note_total(None if page.next else sum(entry.size for entry in entries))
        yield from ((entry.path, entry) for entry in entries)
        limit = MOST_ENTRIES
        after = page.next
        first = False
        if after is None:
            return


def _copy_file(source: CopyLocation, entry: FileInfo, target: CopyLocation, about: tuple[CopyWatch, CopyTally]) -> None:
    watch, tally = about
    present = target.side.look_at(target.path)
    if present is not None and (present.kind, present.size, present.mtime) == ("file", entry.size, entry.mtime):
        tally.unchanged += 1
        watch.note_bytes(entry.size)
        return
    watch.note_file(f"{source.title}{source.path}", f"{target.title}{target.path}", entry.size)
    if not watch.is_dry:
        size = _copy_content(source, entry, target, watch)
        if size is None:
            tally.changed.append(f"{source.title}{source.path}")
            return
        tally.size += size
    else:
        tally.size += entry.size
    tally.files += 1


def _copy_link(source: CopyLocation, entry: FileInfo, target: CopyLocation, about: tuple[CopyWatch, CopyTally]) -> None:
    watch, tally = about
    present = target.side.look_at(target.path)
    if present is not None and (present.kind, present.target) == ("link", entry.target):
        tally.unchanged += 1
        return
    watch.note_file(f"{source.title}{source.path}", f"{target.title}{target.path}", None)
    if not watch.is_dry:
        target.side.make_link(target.path, entry.target or "")
    tally.links += 1


def _copy_content(source: CopyLocation, entry: FileInfo, target: CopyLocation, watch: CopyWatch) -> int | None:
    """Return how many bytes were copied; None: the file changed during each try."""
    for _ in range(_TRIES):
        reader = _ContentReader(source, watch)
        try:
            target.side.write_file(
                FileUpload(target.path, "", reader.size, 0, entry.mtime, entry.executable), reader.open_content
            )
        except Conflict:
            entry = source.side.look_at(source.path) or entry
            continue
        finally:
            reader.close()
        return reader.size
    return None


class _ContentReader:
    """Gives the content of one file, as it was when it was first opened."""

    def __init__(self, source: CopyLocation, watch: CopyWatch) -> None:
        self._source = source
        self._watch = watch
        self._pieces = source.side.read_file(source.path)
        size, self._etag = next(self._pieces).decode().split()
        self.size = int(size)
        self._is_fresh = True

    def open_content(self, offset: int) -> Iterator[bytes]:
        """Yield the content from an offset on, then its SHA-256."""
        if not self._is_fresh or offset:
            self.close()
            self._pieces = self._source.side.read_file(self._source.path, offset, self._etag)
            next(self._pieces)
        self._is_fresh = False
        return self._check_unchanged(offset)

    def close(self) -> None:
        """Close the file."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()

    def _check_unchanged(self, position: int) -> Iterator[bytes]:
        for piece in self._pieces:
            if position < self.size:
                position += len(piece)
                self._watch.note_bytes(len(piece))
                yield piece
                continue
            if piece[:1] != b"0" or len(piece) != _DIGEST + 1:
                raise Conflict(f"{self._source.path} changed while it was copied", "copy it again")
            yield piece[1:]


def add_tallies(tallies: list[CopyTally]) -> CopyTally:
    """Return the sum of several copies."""
    return CopyTally(
        sum(tally.files for tally in tallies),
        sum(tally.size for tally in tallies),
        sum(tally.links for tally in tallies),
        sum(tally.unchanged for tally in tallies),
        list(chain.from_iterable(tally.left_out for tally in tallies)),
        list(chain.from_iterable(tally.changed for tally in tallies)),
    )
