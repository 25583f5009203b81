"""Which files belong to a project."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.files.archives.entries import EntryKind
from riseml.files.project.archive import take_snapshot
from riseml.files.project.listing import list_project_files
from tests.unit.files.project.builders import drop_privileges, fill_folder, list_paths, open_tar


def test_git_and_ignored_files_do_not_belong_to_the_project(tmp_path: Path) -> None:
    fill_folder(tmp_path, ".git/config", "sub/.git", "a.py", "b.pyc", "data/x", "sub/c.py", "sub/keep.pyc", "sub/raw/y")
    (tmp_path / ".gitignore").write_text("*.pyc\n/data\n")
    (tmp_path / ".risemlignore").write_text("raw/\n")
    (tmp_path / "sub" / ".gitignore").write_text("!keep.pyc\n")
    assert list_paths(tmp_path) == [".gitignore", ".risemlignore", "a.py", "sub/.gitignore", "sub/c.py", "sub/keep.pyc"]


def test_what_vanishes_while_the_project_is_listed_does_not_belong_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_folder(tmp_path, "a.py", "gone/b.py", "gone.tmp", "sub/c.py")
    scan = os.scandir

    @contextmanager
    def scan_and_remove(place: Path) -> Iterator[list[os.DirEntry[str]]]:
        with scan(place) as found:
            entries = list(found)
        if place == tmp_path:
            shutil.rmtree(tmp_path / "gone")
            (tmp_path / "gone.tmp").unlink()
        yield entries

    monkeypatch.setattr(os, "scandir", scan_and_remove)
    assert [one.path for one in list_project_files(tmp_path).entries] == ["a.py", "sub/c.py"]
    with pytest.raises(UsageError, match="No such file"):
        list_project_files(tmp_path / "never")


def test_the_rules_of_the_repository_above_count(tmp_path: Path) -> None:
    fill_folder(tmp_path, ".git/HEAD", "p/a.py", "p/a.log", "p/sub/out/x")
    (tmp_path / ".gitignore").write_text("*.log\np/sub/out\n")
    assert list_paths(tmp_path / "p") == ["a.py"]


def test_a_project_that_git_ignores_as_a_whole_is_listed_by_its_own_rules(tmp_path: Path) -> None:
    fill_folder(tmp_path, ".git/HEAD", "p/a.py", "p/b.log")
    (tmp_path / ".gitignore").write_text("p\n*.log\n")
    assert list_paths(tmp_path / "p") == ["a.py", "b.log"]


def test_rules_above_end_at_the_repository(tmp_path: Path) -> None:
    fill_folder(tmp_path, "repo/.git/HEAD", "repo/a.py")
    (tmp_path / ".gitignore").write_text("*\n")
    assert list_paths(tmp_path / "repo") == ["a.py"]


TREES = {
    "negations": (
        "*.o\n/out/\n!keep/*.o\nb/*\n!b/e\n",
        ["a.py", "b/c.o", "b/d.py", "b/e/f.o", "b/e/g", "out/x", "b/out/y", "keep/z.o", "k.o"],
    ),
    "only some kinds of files": ("*\n!*/\n!*.py\n", ["a.py", "a.txt", "p/b.py", "p/q/c.py", "p/d.bin"]),
    "only one folder": ("/*\n!/src\n", ["x", "src/a.py", "src/d/b.py", "other/y"]),
    "a path to one file": (
        "*\n!/models/\n!/models/best/\n!/models/best/*.h5\n",
        ["models/best/a.h5", "models/best/b.txt", "models/c.h5", "d.h5"],
    ),
    "folders kept, their content not": (
        "logs/**\n!logs/**/\n!logs/**/.gitkeep\n",
        ["logs/.gitkeep", "logs/a/.gitkeep", "logs/a/b.log", "logs/x.log"],
    ),
    "nothing comes back from an ignored folder": (
        "secrets\n!*.json\n",
        ["secrets/a.json", "p/secrets/b/c.json", "d.json"],
    ),
    "classes of characters": ("run[[:digit:]]\nckpt-[0-9]*\n", ["run1/x", "runs/x", "ckpt-12.data", "ckpt-a"]),
}


@pytest.mark.parametrize("name", TREES)
def test_the_listing_of_a_tree_equals_what_git_adds(tmp_path: Path, name: str) -> None:
    rules, paths = TREES[name]
    fill_folder(tmp_path, *paths)
    (tmp_path / ".gitignore").write_text(rules)
    git = ["git", "-C", str(tmp_path), "-c", "core.excludesFile=/dev/null"]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.run([*git, "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True)
    found = [entry.path for entry in list_project_files(tmp_path).entries if entry.kind is not EntryKind.FOLDER]
    assert found == sorted(listed.stdout.splitlines())


def test_links_inside_are_kept_as_links(tmp_path: Path) -> None:
    fill_folder(tmp_path, "data/x", "sub/y")
    (tmp_path / "sub" / "link").symlink_to("../data/x")
    (tmp_path / "folder").symlink_to("data")
    (tmp_path / "nowhere").symlink_to("gone")
    with open_tar(tmp_path) as tar:
        links = {member.name: member.linkname for member in tar if member.issym()}
    assert links == {"sub/link": "../data/x", "folder": "data", "nowhere": "gone"}


@pytest.mark.parametrize("target", ["/etc/passwd", "..", "../x", "sub/../../x", "up/x"])
def test_links_that_leave_are_refused_by_name(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "p"
    fill_folder(folder, "sub/a")
    (folder / "bad").symlink_to(target)
    if target.startswith("up"):
        (folder / "up").symlink_to("../elsewhere")
    with pytest.raises(UsageError, match=r"bad \(a link to .*outside the project"):
        list_project_files(folder)


def test_entries_that_cannot_be_sent_are_named_together(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"link{number}").symlink_to("/etc")
    with pytest.raises(UsageError) as raised:
        list_project_files(tmp_path)
    assert "link0 (a link to /etc, outside the project)" in raised.value.message
    assert "and 4 more" in raised.value.message
    (tmp_path / ".risemlignore").write_text("link*\n")
    assert list_paths(tmp_path) == [".risemlignore"]


def test_sockets_and_pipes_are_left_out_in_one_line(tmp_path: Path) -> None:
    fill_folder(tmp_path, "a.py")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "door"))
    found = list_project_files(tmp_path)
    assert [entry.path for entry in found.entries] == ["a.py"]
    assert found.left_out == ("not sent, because git has only files and links: door (a socket), pipe (a named pipe)",)


def test_links_in_a_loop_are_listed_as_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert list_paths(tmp_path) == ["a", "b"]


def test_empty_folders_belong_to_the_project(tmp_path: Path) -> None:
    (tmp_path / "logs" / "deep").mkdir(parents=True)
    fill_folder(tmp_path, "emptied/x.o")
    (tmp_path / ".gitignore").write_text("*.o\n")
    assert list_paths(tmp_path) == [".gitignore", "logs/deep"]
    assert take_snapshot(list_project_files(tmp_path)).count == 1


def test_a_project_above_the_limit_is_refused_before_a_file_is_read(tmp_path: Path) -> None:
    for number in range(7):
        with open(tmp_path / f"big{number}", "wb") as file:
            file.truncate((number + 1) * 2**20)
    with pytest.raises(UsageError) as raised:
        list_project_files(tmp_path, limit=2**20)
    assert "nothing was sent" in raised.value.message
    assert "big6 (7.3 MB), big5" in raised.value.message
    assert "big1" not in raised.value.message
    assert "RISEML_SYNC_LIMIT" in (raised.value.hint or "")


def test_all_unreadable_files_are_named(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="riseml-test-"))
    try:
        folder.chmod(0o755)
        fill_folder(folder, "a.py", "keys/b.pem", "c.key")
        for name in ("keys/b.pem", "c.key"):
            (folder / name).chmod(0o000)
        with (
            drop_privileges(),
            pytest.raises(UsageError, match=r"c\.key \(Permission denied\), keys/b\.pem \(Permission denied\)"),
        ):
            list_project_files(folder)
    finally:
        shutil.rmtree(folder)


def test_a_path_longer_than_the_system_allows_is_refused(tmp_path: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    os.chdir(tmp_path)
    try:
        for _ in range(25):  # 25 x 200 bytes are more than a path may have
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        Path("x").touch()
        with pytest.raises(UsageError, match="File name too long"):
            list_project_files(tmp_path)
    finally:
        os.fchdir(here)
        os.close(here)
