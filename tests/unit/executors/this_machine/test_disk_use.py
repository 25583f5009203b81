"""How full a disk is, and what says that it is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from riseml.base.errors import DiskFull, EngineError
from riseml.executors.this_machine.disk_use import find_full_disk, measure_disk, says_full_disk


@pytest.mark.parametrize(
    ("blocks", "free", "available", "percent"),
    [
        (1000, 1000, 900, 0),
        (1000, 500, 400, 56),  # what only root may fill is not there
        (1000, 100, 0, 100),
        (1000, 999, 999, 1),  # rounded up, as df does
        (0, 0, 0, None),
    ],
)
def test_a_disk_is_as_full_as_df_says(
    blocks: int, free: int, available: int, percent: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_system = SimpleNamespace(f_blocks=blocks, f_bfree=free, f_bavail=available)
    monkeypatch.setattr(os, "statvfs", lambda _: file_system)
    use = measure_disk(tmp_path)
    assert (None if use is None else use.percent) == percent


def test_folders_of_one_file_system_have_one_device(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    outer, inner = measure_disk(tmp_path), measure_disk(tmp_path / "below")
    assert outer is not None
    assert inner is not None
    assert outer.device == inner.device != ""
    with pytest.raises(FileNotFoundError):
        measure_disk(tmp_path / "none")


def test_the_error_that_says_so_is_found_below_others() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    failed = EngineError("the build failed")
    failed.__cause__ = full
    assert find_full_disk(failed) is full
    own = DiskFull("the disk is full", "")
    assert find_full_disk(own) is own
    assert find_full_disk(OSError(errno.EACCES, "Permission denied")) is None


@pytest.mark.parametrize(
    ("line", "full"),
    [
        ("OSError: [Errno 28] No space left on device", True),
        ("npm ERR! code ENOSPC", True),
        ("error: failed to write (os error 28)", True),
        ("NoSpaceLeftError: No space left on devices.", True),
        ("E: You don't have enough free space in /var/cache/apt/archives/.", True),
        ("[riseml: 5 bytes of output are lost, the disk was full]", True),
        ("OSError: [Errno 281] something else", False),
        ("downloading space-left 1.0", False),
    ],
)
def test_a_line_of_a_build_says_that_a_disk_is_full(line: str, *, full: bool) -> None:
    assert says_full_disk(line) is full
