"""The parser of git's index: the list of the files that git tracks. Pure.

The format is git's own (index-format.txt), in its versions 2 to 4, whole, split over two files or sparse. Read by hand:
git may be missing, and asking it costs a process in each sync.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import field

from riseml.base.records import dataclass
from riseml.files.project.git_index import LARGEST

_MOST_NAMES = 1 << 27  # bytes of all names together, which version 4 shortens
_LONGEST_NAME = 4096  # bytes
_SUBMODULE = 0xE0  # in the upper byte of the mode
_FOLDER = 0x40  # in the same byte
_UNWATCHED = 0x80  # in the upper byte of the flags: `assume-unchanged`
_EXTENDED = 0x40  # in the same byte: more flags follow
_SKIPPED = 0x40  # in the upper byte of these: `skip-worktree`


class BadIndex(ValueError):
    """An index that is none of git's, or too large."""


@dataclass(frozen=True, slots=True)
class SubmoduleEntry:
    """A submodule in an index."""

    commit: str  # in hex
    is_skipped: bool  # a sparse checkout leaves it out


@dataclass(frozen=True, slots=True)
class GitIndex:
    """The files that git tracks."""

    paths: list[bytes] = field(repr=False)  # from the root of the work tree; sorted
    submodules: Mapping[bytes, SubmoduleEntry]
    unwatched: frozenset[bytes]  # `git status` says nothing of changes in them

    def tracks(self, path: bytes, *, is_folder: bool) -> bool:
        """Return True when git tracks a file or a submodule, or something below a folder."""
        at = bisect_left(self.paths, path)
        if at < len(self.paths) and self.paths[at] == path:
            return True
        if not is_folder:  # the file may be in the place of a folder
            return False
        below = path + b"/"
        at = bisect_left(self.paths, below)
        return at < len(self.paths) and self.paths[at].startswith(below)


EMPTY_INDEX = GitIndex([], {}, frozenset())


@dataclass(slots=True)
class _Entries:
    """The entries of one file."""

    names: list[bytes]
    submodules: dict[int, SubmoduleEntry]  # by the number of the entry
    unwatched: set[int]
    folders: set[int]  # folders outside of a sparse checkout


def parse_index(data: bytes, hash_size: int, read_shared: Callable[[str], bytes]) -> GitIndex:
    """Return what an index says.

    Args:
        data: the whole file.
        hash_size: bytes of the name of an object: 20, or 32 with SHA-256.
        read_shared: returns the file that a split index names; empty: there is none.

    Raises:
        BadIndex: the data is not an index, or has more than riseml reads.
    """
    try:
        entries, link = _parse_file(data, hash_size)
        if link:
            name = f"sharedindex.{link[:hash_size].hex()}"
            shared, _ = _parse_file(read_shared(name), hash_size)
            entries = _join_entries(shared, entries, link[hash_size:])
    except (IndexError, ValueError) as error:
        raise BadIndex(str(error)) from error
    names = entries.names
    paths = [name for at, name in enumerate(names) if at not in entries.folders] if entries.folders else names
    if link:
        paths.sort()
    return GitIndex(
        paths,
        {names[at]: commit for at, commit in entries.submodules.items()},
        frozenset(names[at] for at in entries.unwatched),
    )


def _parse_file(data: bytes, hash_size: int) -> tuple[_Entries, bytes]:
    """Return the entries of a file, and its extension `link`; empty: it is not split."""
    version = int.from_bytes(data[4:8], "big")
    count = int.from_bytes(data[8:12], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4) or len(data) > LARGEST:
        raise BadIndex("no index that riseml reads")
    entries = _Entries([], {}, set(), set())
    at = _parse_entries(data, (version, count, hash_size), entries)
    end = len(data) - hash_size
    while at + 8 <= end:
        size = int.from_bytes(data[at + 4 : at + 8], "big")
        if data[at : at + 4] == b"link":
            return entries, data[at + 8 : at + 8 + size]
        at += 8 + size
    return entries, b""


def _parse_entries(data: bytes, kind: tuple[int, int, int], entries: _Entries) -> int:
    """Read all entries; return the position after the last one. `kind`: version, number of entries, size of a hash."""
    version, count, hash_size = kind
    names = entries.names
    find = data.index
    at = 12
    left = _MOST_NAMES
    fixed = 42 + hash_size  # bytes of an entry before its name
    name = b""
    for number in range(count):
        start = at + fixed
        mode = data[at + 26]
        flags = data[start - 2]
        if flags >= _EXTENDED or mode in (_SUBMODULE, _FOLDER):
            _note_special(data, at, fixed, number, entries)
            if flags & _EXTENDED:
                start += 2
        if version == 4:
            dropped, start = _read_varint(data, start)
            end = find(b"\0", start)
            name = name[: max(0, len(name) - dropped)] + data[start:end]
            at = end + 1
        else:
            end = find(b"\0", start)
            name = data[start:end]
            at += (end - at + 8) & ~7
        left -= len(name)
        if len(name) > _LONGEST_NAME or left < 0:
            raise BadIndex("its names are too long")
        names.append(name)
    return at


def _note_special(data: bytes, at: int, fixed: int, number: int, entries: _Entries) -> None:
    """Note what is special about one entry."""
    flags = data[at + fixed - 2]
    is_skipped = flags & _EXTENDED != 0 and data[at + fixed] & _SKIPPED != 0
    if flags & _UNWATCHED or is_skipped:
        entries.unwatched.add(number)
    if data[at + 26] == _SUBMODULE:
        entries.submodules[number] = SubmoduleEntry(data[at + 40 : at + fixed - 2].hex(), is_skipped)
    elif data[at + 26] == _FOLDER:
        entries.folders.add(number)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return how many bytes of the name before are cut off, and the position after that number."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
        if value > LARGEST:
            raise BadIndex("a name that cannot be")
    return value, at + 1


def _join_entries(shared: _Entries, own: _Entries, bitmaps: bytes) -> _Entries:
    """Return the entries of a split index: those of the shared file, without some, with some replaced, and the own."""
    count = len(shared.names)
    removed, bitmaps = _read_bitmap(bitmaps, count)
    replaced, _ = _read_bitmap(bitmaps, count)
    own_numbers = iter(range(len(own.names)))
    sources = {at: (own, number) for at, number in zip(sorted(replaced), own_numbers, strict=False)}
    joined = _Entries([], {}, set(), set())
    for at, name in enumerate(shared.names):
        if at not in removed:
            _add_entry(joined, name, *sources.get(at, (shared, at)))
    for number in range(len(replaced), len(own.names)):
        _add_entry(joined, own.names[number], own, number)
    return joined


def _add_entry(joined: _Entries, name: bytes, source: _Entries, number: int) -> None:
    at = len(joined.names)
    joined.names.append(name)
    if number in source.submodules:
        joined.submodules[at] = source.submodules[number]
    if number in source.unwatched:
        joined.unwatched.add(at)
    if number in source.folders:
        joined.folders.add(at)


def _read_bitmap(data: bytes, count: int) -> tuple[set[int], bytes]:
    """Return the bits that are set in a bitmap of git (EWAH), up to `count`, and the bytes after it."""
    size = int.from_bytes(data[4:8], "big")
    end = 8 + 8 * size
    if len(data) < end + 4:
        raise BadIndex("a bitmap ends too early")
    words = [int.from_bytes(data[at : at + 8], "big") for at in range(8, end, 8)]
    members: set[int] = set()
    bit = at = 0
    while at < len(words) and bit < count:
        head = words[at]
        run = 64 * (head >> 1 & 0xFFFFFFFF)
        if head & 1:
            members.update(range(bit, min(bit + run, count)))
        bit += run
        literals = head >> 33
        for word in words[at + 1 : at + 1 + literals]:
            members.update(bit + offset for offset in range(64) if word >> offset & 1)
            bit += 64
        at += 1 + literals
    return {member for member in members if member < count}, data[end + 4 :]
