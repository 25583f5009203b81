"""Manifests: one form for each state, every field checked."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.errors import RisemlError, TooLarge, UsageError
from riseml.files.archives.entries import LATEST_MTIME, ArchiveEntry, EntryKind
from riseml.files.archives.manifest import digest_manifest, list_contents, load_manifest, read_manifest, write_manifest

CONTENT = hashlib.sha256(b"").hexdigest()
NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: not set(b"\0/") & set(name) and name.strip(b"."))


def make_file(path: str, size: int = 0) -> ArchiveEntry:
    return ArchiveEntry(path, EntryKind.FILE, size, 7, content=CONTENT)


@given(st.sets(NAMES, max_size=8), st.integers(0, 2**40), st.integers(0, 2**40))
@settings(max_examples=50, deadline=None)
def test_what_is_written_is_read(names: set[bytes], size: int, mtime: int) -> None:
    entries = [
        ArchiveEntry(name.decode("utf-8", "surrogateescape"), EntryKind.FILE, size, mtime, size % 2 == 1, "", CONTENT)
        for name in names
    ]
    entries.append(ArchiveEntry("z" * 20, EntryKind.LINK, target="y" * 20))
    entries.append(ArchiveEntry("y" * 20, EntryKind.FOLDER, mtime=5))
    data = write_manifest(entries)
    found = read_manifest(data)
    assert found == load_manifest(data)
    assert {entry.path: entry.mtime for entry in found if entry.content} == {
        entry.path: min(mtime, LATEST_MTIME) for entry in entries if entry.content
    }
    assert write_manifest(found) == data, "one form for each state"
    assert digest_manifest(found) == digest_manifest(entries)
    assert list_contents(data) == ({bytes.fromhex(CONTENT)} if names else set())


GOOD = write_manifest([make_file("a/b", 5), ArchiveEntry("c", EntryKind.FOLDER), make_file("d")])
BAD = {
    "cut off": GOOD[:-3],
    "another version": GOOD.replace(b"manifest 1", b"manifest 2"),
    "one field too many": GOOD + b"x\0",
    "not in order": write_manifest([make_file("b")]) + write_manifest([make_file("a")]).partition(b"1\0")[2],
    "twice": write_manifest([make_file("a")]) + write_manifest([make_file("a")]).partition(b"1\0")[2],
    "leads out": GOOD.replace(b"a/b", b"../b"),
    "absolute": GOOD.replace(b"a/b", b"/b"),
    "below a file": write_manifest([make_file("a"), make_file("a/b")]),
    "a folder that is not empty": write_manifest([ArchiveEntry("a", EntryKind.FOLDER), make_file("a/b")]),
    "no SHA-256": GOOD.replace(CONTENT.encode(), b"e3b0"),
    "capitals in a SHA-256": GOOD.replace(CONTENT.encode(), CONTENT.upper().encode()),
    "a negative size": GOOD.replace(b"\x005\x00", b"\x00-5\x00"),
    "a leading zero": GOOD.replace(b"\x005\x00", b"\x0005\x00"),
    "another kind": GOOD.replace(b"folder", b"device"),
    "another flag": GOOD.replace(b"\0-\x005", b"\0s\x005"),
    "a folder with bytes": write_manifest([ArchiveEntry("a", EntryKind.FOLDER, 5)]),
    "a link that leads out": write_manifest([ArchiveEntry("a", EntryKind.LINK, target="../x")]),
    "an absolute link": write_manifest([ArchiveEntry("a", EntryKind.LINK, target="/etc/passwd")]),
    "links that lead out together": write_manifest(
        [
            make_file("d/e/f"),
            ArchiveEntry("a", EntryKind.LINK, target="d/e"),
            ArchiveEntry("b", EntryKind.LINK, target="a/../../.."),
        ]
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_manifest_that_is_none_is_refused(what: str) -> None:
    with pytest.raises(UsageError):
        read_manifest(BAD[what])


@given(st.binary(max_size=3), st.integers(0, len(GOOD)), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_read_or_refused(put: bytes, at: int, removed: int) -> None:
    try:
        found = read_manifest(GOOD[:at] + put + GOOD[at + removed :])
    except RisemlError:
        return
    assert write_manifest(found) == GOOD[:at] + put + GOOD[at + removed :]


def test_too_many_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.files.archives.tree.MOST_FILES", 2)
    with pytest.raises(TooLarge):
        read_manifest(write_manifest([make_file(name) for name in "abc"]))
