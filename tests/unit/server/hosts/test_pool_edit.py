"""pool.yml is rewritten whole or not at all, and no change that a user makes meanwhile is lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from riseml.base.errors import Conflict, UsageError
from riseml.server.hosts import pool_edit
from riseml.server.hosts.pool_edit import rewrite_pool_file
from tests.support.waiting import DEADLINE


@pytest.fixture(params=["exchange", "replace"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pool.yml, on a file system that can exchange two files, and on one that cannot."""
    if request.param == "replace":

        def refuse(one: Path, other: Path) -> None:
            raise OSError(22, "Invalid argument")

        monkeypatch.setattr(pool_edit, "_exchange", refuse)
    return tmp_path / "pool.yml"


def test_a_missing_file_is_made(path: Path) -> None:
    rewrite_pool_file(path, lambda text: text + "new\n")
    assert path.read_text() == "new\n"
    rewrite_pool_file(path, lambda text: text + "more\n")
    assert path.read_text() == "new\nmore\n"
    assert [one.name for one in path.parent.iterdir() if not one.name.endswith(".lock")] == ["pool.yml"]


def test_the_mode_and_a_link_stay(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.yml"
    target.write_text("old\n")
    target.chmod(0o600)
    path.symlink_to(target)
    rewrite_pool_file(path, lambda text: text + "new\n")
    assert path.is_symlink()
    assert target.read_text() == "old\nnew\n"
    assert target.stat().st_mode & 0o777 == 0o600


def test_changes_of_many_at_once_are_all_there(path: Path) -> None:
    start = threading.Barrier(8)

    def change(number: int) -> None:
        start.wait(DEADLINE)
        rewrite_pool_file(path, lambda text: text + f"{number}\n")

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(change, range(8)))
    assert sorted(path.read_text().split()) == [str(number) for number in range(8)]


@pytest.mark.parametrize("editor", ["in place", "renames", "creates"])
def test_a_change_by_hand_in_between_is_kept(path: Path, editor: str) -> None:
    if editor != "creates":
        path.write_text("old\n")
    calls: list[str] = []

    def change(text: str) -> str:
        if not calls:  # a user saves after the file was read
            fresh = path.with_name("editor.tmp")
            fresh.write_text(text + "by hand\n")
            if editor == "renames":
                fresh.replace(path)
            else:
                path.write_text(fresh.read_text())
                fresh.unlink()
        calls.append(text)
        return text + "new\n"

    rewrite_pool_file(path, change)
    assert path.read_text() == ("" if editor == "creates" else "old\n") + "by hand\nnew\n"


def test_what_refuses_the_change_leaves_the_file(path: Path) -> None:
    path.write_text("old\n")

    def refuse(text: str) -> str:
        raise Conflict("no")

    with pytest.raises(Conflict, match="no"):
        rewrite_pool_file(path, refuse)
    assert path.read_text() == "old\n"


def test_a_file_that_always_changes_is_given_up(path: Path) -> None:
    path.write_text("0\n")

    def change(text: str) -> str:
        path.write_text(f"{int(text) + 1}\n")
        return "mine\n"

    with pytest.raises(Conflict, match="changes all the time"):
        rewrite_pool_file(path, change)
    assert path.read_text() == "20\n"


def test_a_file_that_is_not_text_is_refused(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8"):
        rewrite_pool_file(path, lambda text: text + "new\n")


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be changed"):
        rewrite_pool_file(tmp_path / "file" / "pool.yml", lambda text: text + "new\n")
