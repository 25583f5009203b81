"""What is written is what tarfile writes in GNU's format, byte for byte, and the reader reads it back."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.files.archives.entries import LATEST_MTIME, ArchiveEntry, EntryKind
from riseml.files.archives.reader import read_entries
from riseml.files.archives.writer import END, FileOwner, write_header

PARTS = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60).filter(
    lambda part: part not in (".", "..")
)
PATHS = st.lists(PARTS, min_size=1, max_size=8).map("/".join)
OWNERS = st.builds(FileOwner, st.integers(0, 2**32 - 2), st.integers(0, 2**32 - 2))
TIMES = st.integers(0, LATEST_MTIME)
ENTRIES = st.one_of(
    st.tuples(PATHS, st.just(EntryKind.FILE), st.integers(0, 2**40), TIMES, st.booleans()),
    st.tuples(PATHS, st.just(EntryKind.LINK), st.just(0), TIMES, st.just(False), PATHS),  # noqa: FBT003  # a field of the entry
    st.tuples(PATHS, st.just(EntryKind.FOLDER), st.just(0), TIMES),
).map(lambda fields: ArchiveEntry(*fields))


@given(entry=ENTRIES, owner=OWNERS)
def test_a_header_is_that_of_tarfile(entry: ArchiveEntry, owner: FileOwner) -> None:
    member = tarfile.TarInfo(f"code/{entry.path}")
    member.mode = 0o755 if entry.executable or entry.kind is EntryKind.FOLDER else 0o644
    member.type = {EntryKind.FILE: tarfile.REGTYPE, EntryKind.LINK: tarfile.SYMTYPE}.get(entry.kind, tarfile.DIRTYPE)
    member.uid, member.gid, member.size, member.mtime = owner.uid, owner.gid, entry.size, entry.mtime
    member.linkname = entry.target
    assert write_header(entry, owner, "code") == member.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


@given(entries=st.lists(ENTRIES.filter(lambda entry: entry.size == 0), max_size=5))
def test_what_was_written_is_read_back(entries: list[ArchiveEntry]) -> None:
    archive = b"".join(map(write_header, entries)) + END
    assert [entry for entry, _ in read_entries(io.BytesIO(archive))] == entries


@pytest.mark.parametrize(("mtime", "written"), [(-1, 0), (LATEST_MTIME + 1, LATEST_MTIME)])
def test_a_time_of_change_that_does_not_fit_is_cut(mtime: int, written: int) -> None:
    archive = write_header(ArchiveEntry("a", EntryKind.FILE, mtime=mtime)) + END
    assert [entry.mtime for entry, _ in read_entries(io.BytesIO(archive))] == [written]
