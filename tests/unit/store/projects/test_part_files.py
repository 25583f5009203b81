"""Files that are being written: named when they are complete, otherwise removed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from riseml.base.errors import StoreError
from riseml.store.projects.part_files import make_part_file, refuse_full_disk


def test_a_file_that_was_renamed_stays(tmp_path: Path) -> None:
    with make_part_file(tmp_path) as part, make_part_file(tmp_path) as other:
        assert part != other, "two clients may upload the same project"
        part.write_text("whole")
        part.rename(tmp_path / "named")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("named", "whole")]


def test_a_file_that_breaks_is_removed(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError), make_part_file(tmp_path) as part:
        part.write_text("half")
        raise ConnectionError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_an_error_of_the_store(tmp_path: Path, number: int) -> None:
    with pytest.raises(StoreError, match=f"the disk of {tmp_path} is full"), refuse_full_disk(tmp_path):
        raise OSError(number, os.strerror(number))


def test_another_error_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), refuse_full_disk(tmp_path):
        raise PermissionError(errno.EACCES, "no")
