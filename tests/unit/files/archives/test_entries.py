"""The entries of a project in the order of their paths' bytes."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.files.archives.entries import ArchiveEntry, EntryKind, sort_by_path


@pytest.mark.parametrize(
    "paths",
    [
        ["a", "a-b", "a/b", "ab", "b"],
        ["a/b", "a/é", "é"],
        ["\uffff", "\U0001f642", "\udcff"],  # in UTF-8; as text, a surrogate escape sorts before U+FFFF
    ],
)
def test_paths_are_sorted_as_bytes(paths: list[str]) -> None:
    entries = [ArchiveEntry(path, EntryKind.FILE) for path in reversed(paths)]
    assert [entry.path for entry in sort_by_path(entries)] == paths


@given(st.lists(st.binary(min_size=1, max_size=5)))
def test_any_paths_are_sorted_as_bytes(paths: list[bytes]) -> None:
    entries = [ArchiveEntry(os.fsdecode(path), EntryKind.FILE) for path in paths]
    assert [os.fsencode(entry.path) for entry in sort_by_path(entries)] == sorted(paths)
