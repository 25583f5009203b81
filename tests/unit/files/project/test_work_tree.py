"""What travels is what git would carry: files that it tracks, without those that it ignores for the user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from riseml.files.project.git_state import ask_git
from riseml.files.project.listing import ReservedName, Surroundings, list_project_files
from tests.unit.files.project.builders import fill_folder, list_paths
from tests.unit.files.project.repositories import commit_all, git, is_clean, list_files

TRACKED = [".gitignore", "a.py", "data/deep/two.bin", "data/one.bin", "docs/x.train", "out/kept.txt", "x.train"]


@pytest.mark.parametrize("kind", ["index.version=2", "index.version=4", "core.splitIndex=true"])
def test_files_that_git_tracks_travel_although_a_rule_ignores_them(project: Path, kind: str) -> None:
    git(project, "config", *kind.split("="))
    fill_folder(project, "more.train", "data/more.bin", "libs/b.train")
    git(project, "add", "-f", "more.train", "data/more.bin", "libs/b.train")
    if kind == "core.splitIndex=true":
        git(project, "update-index", "--split-index")
        git(project, "rm", "-q", "--cached", "data/more.bin", "docs/x.train")
        git(project, "update-index", "--chmod=+x", "x.train")
        assert list((project / ".git").glob("sharedindex.*"))
    else:
        git(project, "update-index", "--force-write-index")
    expected = git(project, "ls-files", "-z").split("\0")[:-1]
    assert list_files(project) == sorted({*expected, "new.py"})
    assert list_files(project / "libs") == ["b.train"], "as a project in a folder of the repository"


def test_repositories_with_sha_256_and_work_trees_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    fill_folder(folder, "a.py", "b.train")
    (folder / ".gitignore").write_text("*.train\n")
    commit_all(folder, "--object-format=sha256")
    git(folder, "worktree", "add", "-q", "../other")
    fill_folder(tmp_path / "other", "new.train", "ours.txt")
    (folder / ".git" / "info" / "exclude").write_text("ours.txt\n")
    for place in (folder, tmp_path / "other"):
        assert list_files(place) == [".gitignore", "a.py", "b.train"]
        assert is_clean(place) is True


def test_risemlignore_leaves_out_what_git_tracks(project: Path) -> None:
    (project / ".risemlignore").write_text("/x.train\ndata/deep\n")
    fill_folder(project, "data/.risemlignore")
    (project / "data" / ".risemlignore").write_text("one.bin\n")
    left = [path for path in TRACKED if path not in ("x.train", "data/deep/two.bin", "data/one.bin")]
    assert list_files(project) == sorted([*left, ".risemlignore", "new.py"])
    (project / ".risemlignore").write_text("!y.train\n")
    assert "y.train" in list_files(project)


def test_a_file_that_git_tracks_no_more_is_ignored_again(project: Path) -> None:
    git(project, "rm", "-q", "--cached", "x.train", "-r", "data")
    assert list_files(project) == sorted([*TRACKED[:2], "docs/x.train", "out/kept.txt", "new.py"])


def test_sockets_pipes_and_the_folders_of_riseml_stay_here(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    fill_folder(folder, "a.py", "rm/home/riseml.db", ".riseml/output/4/x")
    os.mkfifo(folder / "pipe")
    commit_all(folder)
    git(folder, "rm", "-rq", "--cached", "rm", ".riseml")
    git(folder, "commit", "-qm", "two")
    homes = ("RISEML_HOME", folder / "rm" / "home"), ("RISEML_OUTPUT", folder / ".riseml")
    found = list_project_files(folder, around=Surroundings(os.environ, homes))
    assert [entry.path for entry in found.entries] == ["a.py"]
    assert found.left_out == (
        ".riseml is riseml's own folder (RISEML_OUTPUT), and is not sent",
        "rm/home is riseml's own folder (RISEML_HOME), and is not sent",
        "not sent, because git has only files and links: pipe (a named pipe)",
    )
    question = ask_git(folder, os.environ, ["rm/home", ".riseml"])
    assert question is not None
    assert question.read_answer() is True


@pytest.mark.parametrize("kind", ["file", "folder", "empty folder", "link"])
def test_the_name_of_riseml_s_own_folder_is_refused(tmp_path: Path, kind: str) -> None:
    fill_folder(tmp_path, "a.py", "sub/.riseml")
    place = tmp_path / ".riseml"
    if kind == "link":
        place.symlink_to("a.py")
    elif kind == "empty folder":
        place.mkdir()
    else:
        fill_folder(tmp_path, ".riseml" if kind == "file" else ".riseml/x")
    with pytest.raises(ReservedName, match=f"the project has a {kind.split()[-1]} named .riseml: that is the name"):
        list_project_files(tmp_path)
    (tmp_path / ".risemlignore").write_text("/.riseml\n")
    assert list_paths(tmp_path) == [".risemlignore", "a.py", "sub/.riseml"]
