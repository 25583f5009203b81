"""Files are copied from one folder to another: whole, once, and again where a copy broke off."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from riseml.base.errors import Conflict, EngineError, RisemlError
from riseml.executors.base import WorkCancelled
from riseml.files.local_files import LocalFiles
from riseml.files.storage.folder_copy import FolderCopy, copy_folder
from riseml.job_programs.folder_contents import PART


def open_files(folder: Path, kind: type[LocalFiles] = LocalFiles) -> LocalFiles:
    def open_root() -> int:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    return kind(str(folder.name), open_root, open_root)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "parent", tmp_path / "child"
    for folder in (source, target):
        folder.mkdir()
    (source / "checkpoint" / "deep").mkdir(parents=True)
    (source / "checkpoint" / "model").write_bytes(os.urandom(3 << 20))
    (source / "checkpoint" / "deep" / "empty").touch()
    (source / "run.sh").write_text("true")
    (source / "run.sh").chmod(0o755)
    (source / "nothing").mkdir()
    (source / "checkpoint" / "latest").symlink_to("model")
    (source / "out").symlink_to("/etc/hostname")
    return source, target


def copy(
    folders: tuple[Path, Path],
    wants: Callable[[str], bool] = lambda _: True,
    check: Callable[[], None] = lambda: None,
    kind: type[LocalFiles] = LocalFiles,
) -> str:
    source, target = folders
    request = FolderCopy(open_files(source, kind), open_files(target), wants, check, lambda *_: None)
    return copy_folder(request).describe()


def describe(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return what is below a folder, with the times of its files."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            found[str(path.relative_to(folder))] = (path.readlink(),)
        elif path.is_dir():
            found[str(path.relative_to(folder))] = ()
        else:
            found[str(path.relative_to(folder))] = (path.read_bytes(), status.st_mtime_ns, os.access(path, os.X_OK))
    return found


def test_everything_arrives_but_links_that_lead_out(folders: tuple[Path, Path]) -> None:
    assert copy(folders) == "3 files (3 MiB, without 1 link that leads out of it)"
    source, target = folders
    (source / "out").unlink()
    assert describe(target) == describe(source)
    assert copy(folders) == "3 files (3 MiB)"


def test_chosen_files_arrive_alone(folders: tuple[Path, Path]) -> None:
    copy(folders, lambda path: path.endswith("empty"))
    assert list(describe(folders[1])) == ["checkpoint", "checkpoint/deep", "checkpoint/deep/empty"]


def test_a_copy_that_broke_off_is_made_again_and_whole_files_stay(folders: tuple[Path, Path]) -> None:
    source, target = folders
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise WorkCancelled("stop")

    with pytest.raises(WorkCancelled):
        copy(folders, check=check)
    (source / "out").unlink()
    assert describe(target) != describe(source)
    whole = {path: path.stat().st_ino for path in target.rglob("*") if path.is_file()}
    (target / f"{PART}0123456789abcdef").touch()  # of a server that was killed
    copy(folders)
    assert describe(target) == describe(source)
    assert all(path.stat().st_ino == inode for path, inode in whole.items())


def test_a_file_with_other_content_is_replaced(folders: tuple[Path, Path]) -> None:
    source, target = folders
    (target / "run.sh").write_text("exit 1")
    copy(folders)
    (source / "out").unlink()
    assert describe(target) == describe(source)


class ChangingFiles(LocalFiles):
    """Files that are written while they are read."""

    def read_file(self, path: str, start: int, etag: str | None) -> Iterator[bytes]:
        pieces = super().read_file(path, start, etag)
        yield from (next(pieces), next(pieces))
        os.pwrite(handle := os.open(self._written, os.O_WRONLY), b"other", 0)
        os.close(handle)
        yield from pieces

    _written: Path


class RemovedFiles(LocalFiles):
    """Files that are removed after they were listed."""

    def read_file(self, path: str, start: int, etag: str | None) -> Iterator[bytes]:
        return super().read_file(f"{path}.gone", start, None)


def test_a_file_that_changes_or_goes_meanwhile_is_an_error_and_not_a_half_file(folders: tuple[Path, Path]) -> None:
    source, target = folders
    ChangingFiles._written = source / "checkpoint" / "model"
    for kind, words in ((ChangingFiles, "changed while it was copied"), (RemovedFiles, "does not exist")):
        with pytest.raises(RisemlError, match=words) as error:
            copy(folders, lambda path: path.endswith("model"), kind=kind)
        assert isinstance(error.value, EngineError | Conflict)
        assert not getattr(error.value, "permanent", False), "it is tried again"
        assert not [path for path in target.rglob("*") if path.is_file()]
