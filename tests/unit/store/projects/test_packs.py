"""Packs: many contents in one file, which is complete or removed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from riseml.store.projects.packs import OpenPacks, PackFile, scan_pack

TEXTS = (b"hello", b"", b"x" * 3_000_000)


def write_pack(folder: Path, *texts: bytes) -> Path:
    """Write a complete pack, and return its path."""
    with PackFile(folder) as pack:
        for text in texts:
            pack.begin_content(len(text))
            pack.add_bytes(text[:2])
            pack.add_bytes(memoryview(text)[2:])
            assert pack.hash_content() == hashlib.sha256(text).digest()
            pack.keep_content()
        new = pack.finish()
        assert new is not None
        new.flush()
        assert (new.size, tuple(scan_pack(new.path))) == (new.path.stat().st_size, new.contents)
        return new.path.rename(folder / "1.pack")


def test_each_content_is_read_at_its_place(tmp_path: Path) -> None:
    path = write_pack(tmp_path, *TEXTS)
    with OpenPacks(tmp_path) as packs:
        texts = [packs.read("1.pack", content.at, content.size) for content in scan_pack(path)]
        assert packs.read("1.pack", path.stat().st_size, 10) == b""
    assert texts == list(TEXTS)
    assert os.listdir(tmp_path) == ["1.pack"]


def test_a_dropped_content_leaves_nothing(tmp_path: Path) -> None:
    with PackFile(tmp_path) as pack:
        for text, keeps in ((b"kept", True), (b"dropped", False), (b"also kept", True)):
            pack.begin_content(len(text))
            pack.add_bytes(text)
            if keeps:
                pack.keep_content()
            else:
                pack.drop_content()
        new = pack.finish()
        assert new is not None
        assert [content.size for content in scan_pack(new.path)] == [4, 9]
    assert os.listdir(tmp_path) == [], "it was not renamed"


def test_a_pack_without_contents_is_none(tmp_path: Path) -> None:
    with PackFile(tmp_path) as pack:
        assert pack.finish() is None
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("cut", [1, 2_999_999, 3_000_001])
def test_a_record_that_is_cut_off_is_left_out(tmp_path: Path, cut: int) -> None:
    path = write_pack(tmp_path, *TEXTS)
    os.truncate(path, path.stat().st_size - cut)
    assert [content.size for content in scan_pack(path)] == [5, 0]


def test_many_packs_share_few_descriptors(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number}.pack").write_bytes(b"%d" % number)
    before = len(os.listdir("/proc/self/fd"))
    with OpenPacks(tmp_path) as packs:
        assert [packs.read(f"{number}.pack", 0, 3) for number in range(100)] == [b"%d" % at for at in range(100)]
        assert len(os.listdir("/proc/self/fd")) - before <= 32
        assert packs.read("0.pack", 0, 3) == b"0"
    assert len(os.listdir("/proc/self/fd")) == before
