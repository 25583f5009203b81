"""The files of a stored state, and the changes that turn one state into another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.manifest import write_manifest
from riseml.store.projects.contents import ContentStore
from riseml.store.projects.stored_files import StoredFiles, compare_states

FILE, LINK, FOLDER = EntryKind.FILE, EntryKind.LINK, EntryKind.FOLDER
entries = st.builds(
    ArchiveEntry,
    path=st.sampled_from(["a", "b/c", "b/d", "\udcff"]),
    kind=st.sampled_from(list(EntryKind)),
    size=st.integers(0, 2),
    mtime=st.integers(0, 2),
    executable=st.booleans(),
    target=st.sampled_from(["", "a"]),
    content=st.sampled_from(["", "11" * 32]),
)
states = st.lists(entries, max_size=4, unique_by=lambda entry: entry.path)


@settings(max_examples=50)
@given(states, states)
def test_writing_the_changes_over_the_earlier_state_gives_the_later_one(
    before: list[ArchiveEntry], after: list[ArchiveEntry]
) -> None:
    changes = compare_states(before, after)
    known, wanted = {one.path: one for one in before}, {one.path: one for one in after}
    if changes is None:
        turned = [path for path in known.keys() & wanted.keys() if FOLDER in (known[path].kind, wanted[path].kind)]
        assert known.keys() - wanted.keys() or any(known[path].kind is not wanted[path].kind for path in turned)
        return
    assert {**known, **{path: wanted[path] for path in changes.paths}} == wanted
    assert changes.size == sum(wanted[path].size for path in changes.paths)
    assert all(known.get(path) != wanted[path] for path in changes.paths), "nothing else is written"


def test_an_earlier_state_counts_as_the_server_has_it(tmp_path: Path) -> None:
    before = ArchiveEntry("a", FILE, 1, 1, content="11" * 32)
    after = ArchiveEntry("a", FILE, 1, 2, content="11" * 32)
    stored = {"then": write([before])}
    files = StoredFiles(ContentStore(tmp_path), write([after]), stored.get)
    identity = hashlib.sha256(stored["then"]).hexdigest()
    assert (files.size, files.count, len(files.identity)) == (1, 1, 64)
    found = files.find_changes("then", identity)
    assert found is not None
    assert found.paths == {"a"}, "another time of change is a change"
    assert files.find_changes("then", "0" * 64) is None, "it was sent again, with other times"
    assert files.find_changes("gone", identity) is None


def write(state: Iterable[ArchiveEntry]) -> bytes:
    return write_manifest(tuple(state))
