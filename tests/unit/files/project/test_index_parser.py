"""The parser of git's index: sparse checkouts, and bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.files.project.index_parser import BadIndex, parse_index
from riseml.files.project.listing import list_project_files
from tests.unit.files.project.builders import fill_folder
from tests.unit.files.project.repositories import commit_all, git


def test_a_sparse_checkout_names_nothing_that_it_leaves_out(tmp_path: Path) -> None:
    fill_folder(tmp_path / "part", "p.py")
    commit_all(tmp_path / "part")
    folder = tmp_path / "project"
    fill_folder(folder, "src/a.py", "src/b.train", "far/c.py")
    (folder / ".gitignore").write_text("*.train\n")
    commit_all(folder)
    git(folder, "submodule", "add", "-q", str(tmp_path / "part"), "far/part")
    git(folder, "commit", "-qm", "two")
    git(folder, "submodule", "deinit", "-q", "-f", "far/part")
    git(folder, "sparse-checkout", "set", "--cone", "--sparse-index", "src")
    found = list_project_files(folder)
    assert [entry.path for entry in found.entries] == [".gitignore", ".gitmodules", "src/a.py", "src/b.train"]
    assert found.incomplete == ()


def test_an_index_whose_names_grow_without_end_is_refused() -> None:
    entry = bytes(26) + b"\x81\xa4" + bytes(12 + 20) + b"\0\0"
    long = b"DIRC\0\0\0\4" + (2).to_bytes(4, "big") + entry + b"\0" + b"a" * 5000 + b"\0" + entry + b"\0b\0" + bytes(20)
    with pytest.raises(BadIndex, match="too long"):
        parse_index(long, 20, lambda _: b"")
