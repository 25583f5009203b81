"""The index of git: what it tracks, however it is asked."""

from __future__ import annotations

from pathlib import Path

from riseml.files.project.git_index import LazyIndex
from riseml.files.project.index_parser import parse_index
from riseml.files.project.listing import list_project_files


def test_the_index_says_the_same_however_it_is_asked(project: Path) -> None:
    data = (project / ".git" / "index").read_bytes()
    for path, answer in {b"x.train": True, b"y.train": False, b"data": True, b"dat": False, b"train": False}.items():
        assert LazyIndex(data, 20, lambda _: b"").tracks(path, is_folder=True) is answer
        assert parse_index(data, 20, lambda _: b"").tracks(path, is_folder=True) is answer
    index = LazyIndex(data, 20, lambda _: b"")
    assert not index.tracks(b"data", is_folder=False), "a file in the place of a folder"
    assert [index.tracks(b"none%d" % number, is_folder=False) for number in range(50)] == [False] * 50


def test_a_damaged_index_is_named_and_tracks_nothing(project: Path) -> None:
    data = (project / ".git" / "index").read_bytes()
    for damaged in (b"DIRC" + data[4:8] + b"\xff" * 4 + data[12:], b"nothing", data[:4] + b"\0\0\0\x09"):
        (project / ".git" / "index").write_bytes(damaged)
        found = list_project_files(project)
        assert "x.train" not in [entry.path for entry in found.entries]
        assert found.left_out == (
            "git's index cannot be read: files that git tracks although a rule excludes them are not sent",
        )
