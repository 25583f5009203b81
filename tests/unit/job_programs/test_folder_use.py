"""What a folder takes of its disk."""

from __future__ import annotations

import os
from pathlib import Path

from riseml.job_programs.folder_paths import FileErrorKind
from riseml.job_programs.folder_use import count_used
from tests.support.deep_folders import make_deep_folders
from tests.unit.job_programs.folder_files import fails


def test_what_a_folder_takes_of_its_disk_is_counted_once_and_without_holes(root: int, folder: Path) -> None:
    before = count_used(root)
    (folder / "inner").mkdir()
    (folder / "inner" / "one").write_bytes(bytes(1 << 20))
    (folder / "another").hardlink_to(folder / "inner" / "one")
    (folder / "link").symlink_to("/")
    with (folder / "hole").open("wb") as file:
        file.truncate(1 << 40)
    os.fsync(root)
    assert 1 << 20 <= count_used(root) - before < (1 << 20) + (64 << 10)


def test_files_without_bytes_are_not_counted_as_nothing(root: int, folder: Path) -> None:
    before = count_used(root)
    for number in range(1000):
        (folder / str(number)).touch()
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("x")
    assert count_used(root) - before >= 1002 * 4096


def test_what_lies_deeper_than_riseml_goes_is_not_counted_as_nothing(root: int, folder: Path) -> None:
    make_deep_folders(folder, 300)
    with fails(FileErrorKind.DEEP):
        count_used(root)


def test_what_may_be_listed_and_not_entered_is_not_counted_as_nothing(root: int, folder: Path) -> None:
    """A folder of mode 744 in the output of a job of another user. Root may enter it all the same."""
    (folder / "listed").mkdir()
    (folder / "listed" / "large").write_bytes(bytes(1 << 20))
    (folder / "listed").chmod(0o444)
    user = os.geteuid()
    os.seteuid(user or 65534)
    try:
        with fails(FileErrorKind.DENIED):
            count_used(root)
    finally:
        os.seteuid(user)
        (folder / "listed").chmod(0o755)
