"""Whether files can share their blocks: where they cannot, nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.environments.shared_blocks import can_share_blocks, share_blocks


def test_a_file_shares_the_blocks_of_another_or_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"x" * 8192)
    with open(tmp_path / "source", "rb") as source, open(tmp_path / "copy", "wb") as copy:
        shared = share_blocks(source.fileno(), copy.fileno())
    assert shared == can_share_blocks(tmp_path)
    assert (tmp_path / "copy").read_bytes() == (b"x" * 8192 if shared else b"")


def test_files_of_two_file_systems_share_nothing(tmp_path: Path) -> None:
    with open("/proc/self/status", "rb") as source, open(tmp_path / "copy", "wb") as copy:
        assert not share_blocks(source.fileno(), copy.fileno())


def test_asking_leaves_nothing_behind(tmp_path: Path) -> None:
    can_share_blocks(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        can_share_blocks(tmp_path / "none")
