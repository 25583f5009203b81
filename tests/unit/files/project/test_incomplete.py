"""What git has not filled in a project is named with the command that fills it."""

from __future__ import annotations

import os
from pathlib import Path

from riseml.files.project.listing import list_project_files
from tests.unit.files.project.builders import fill_folder
from tests.unit.files.project.repositories import LONG_POINTER, POINTER, commit_all, git, is_clean, tell_incomplete


def test_submodules_that_are_not_checked_out_are_named_with_the_command(tmp_path: Path) -> None:
    fill_folder(tmp_path / "deep", "d.py")
    commit_all(tmp_path / "deep")
    fill_folder(tmp_path / "part", "p.py", "ours.train")
    (tmp_path / "part" / ".gitignore").write_text("*.train\n")
    commit_all(tmp_path / "part")
    git(tmp_path / "part", "submodule", "add", "-q", str(tmp_path / "deep"), "inner")
    git(tmp_path / "part", "commit", "-qm", "two")
    folder = tmp_path / "project"
    fill_folder(folder, "a.py", "sub/b.py")
    commit_all(folder)
    git(folder, "submodule", "add", "-q", str(tmp_path / "part"), "sub/libs/my part")
    git(folder, "commit", "-qm", "two")
    found = list_project_files(folder)
    assert tell_incomplete(found) == [
        "sub/libs/my part/inner is a submodule that is not checked out, so the jobs do not get its files: check it out"
        " with `git -C 'sub/libs/my part' submodule update --init inner`"
    ]
    assert "sub/libs/my part/ours.train" in [entry.path for entry in found.entries], "its own index counts"
    assert is_clean(folder) is False
    git(folder, "submodule", "update", "--init", "--recursive", "-q")
    assert list_project_files(folder).incomplete == ()
    assert is_clean(folder) is True
    (folder / "sub/libs/my part/p.py").write_text("changed\n")
    assert is_clean(folder) is False
    git(folder / "sub/libs/my part", "commit", "-qam", "three")
    assert is_clean(folder) is False, "it is at another commit"

    git(folder, "worktree", "add", "-q", "../other")
    [told] = tell_incomplete(list_project_files(tmp_path / "other"))
    assert told.endswith("check it out with `git submodule update --init 'sub/libs/my part'`")
    assert is_clean(tmp_path / "other") is False
    (tmp_path / "other/sub/libs/my part").rmdir()
    [told] = tell_incomplete(list_project_files(tmp_path / "other" / "sub"))
    assert told.endswith("`git submodule update --init 'libs/my part'`"), "a folder that is gone, from the project"
    (tmp_path / "other" / "sub" / ".risemlignore").write_text("libs\n")
    assert tell_incomplete(list_project_files(tmp_path / "other" / "sub")) == []


def test_pointers_of_git_lfs_are_named_with_the_command(tmp_path: Path) -> None:
    fill_folder(tmp_path, "a.py")
    (tmp_path / "weights.bin").write_text(POINTER)
    (tmp_path / "same size.txt").write_text("x" * len(POINTER))
    (tmp_path / "ignored.bin").write_text(POINTER)
    (tmp_path / ".risemlignore").write_text("ignored.bin\n")
    assert tell_incomplete(list_project_files(tmp_path)) == [
        "weights.bin is a pointer of Git LFS, so the jobs do not get what is behind: fetch it with `git lfs pull`"
    ]


def test_pointers_of_git_lfs_with_lines_of_extensions_are_named(tmp_path: Path) -> None:
    fill_folder(tmp_path, "sub/a.py")
    commit_all(tmp_path)
    (tmp_path / ".gitattributes").write_text('*.bin filter=lfs diff=lfs -text\n"my data/*" text filter=lfs\n')
    (tmp_path / "sub" / ".gitattributes").write_text("# one kind\nweights filter=lfs\n*.py text\n")
    fill_folder(tmp_path, "sub/weights", "sub/x.bin", "my data/x", "weights", "large.bin")
    for path in ("sub/weights", "sub/x.bin", "my data/x", "weights"):
        (tmp_path / path).write_text(LONG_POINTER)
    (tmp_path / "large.bin").write_text("x" * len(LONG_POINTER))
    [found] = list_project_files(tmp_path).incomplete
    assert found.paths == ("my data/x", "sub/weights", "sub/x.bin"), "no rule says that Git LFS keeps weights"
    [found] = list_project_files(tmp_path / "sub").incomplete
    assert found.paths == ("weights", "x.bin"), "a rule above the project counts"


def test_the_rules_above_a_project_that_is_a_link_are_those_of_its_repository(tmp_path: Path) -> None:
    fill_folder(tmp_path, "repository/a.py", "elsewhere/x.bin", "elsewhere/weights")
    commit_all(tmp_path / "repository")
    (tmp_path / "repository" / ".gitattributes").write_text("*.bin filter=lfs\n")
    (tmp_path / ".gitattributes").write_text("weights filter=lfs\n")
    for name in ("x.bin", "weights"):
        (tmp_path / "elsewhere" / name).write_text(LONG_POINTER)
    (tmp_path / "repository" / "link").symlink_to("../elsewhere")
    [found] = list_project_files(tmp_path / "repository" / "link").incomplete
    assert found.paths == ("x.bin",)


def test_attributes_that_are_a_pipe_with_a_writer_are_none(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_text(LONG_POINTER)
    os.mkfifo(tmp_path / ".gitattributes")
    writer = os.open(tmp_path / ".gitattributes", os.O_RDWR)
    try:
        assert list_project_files(tmp_path).incomplete == ()
    finally:
        os.close(writer)
