"""The code of a capsule is unpacked into a new folder: all of it, or nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from riseml.base.errors import Conflict, UsageError
from riseml.capsules.checkout import check_target, unpack_code
from riseml.capsules.folder import read_capsule
from riseml.files.archives.digest import digest_entries
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.writer import END, write_header
from tests.support.archives import find_digest
from tests.unit.capsules.capsule_code import ARCHIVE


def test_an_empty_folder_stays_the_same_folder_and_a_new_one_has_the_mode_of_the_umask(
    folder: Path, tmp_path: Path
) -> None:
    digest = find_digest(ARCHIVE)
    archive = read_capsule(folder).find_archive()
    assert archive is not None
    there = tmp_path / "there"
    there.mkdir(0o700)
    before = there.stat()
    assert unpack_code(archive, digest, there) == 2
    after = there.stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert sorted(os.listdir(there)) == ["below", "riseml.yml"]
    umask = os.umask(0o027)
    try:
        unpack_code(archive, digest, tmp_path / "new")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o750


def test_a_link_of_the_code_that_leads_out_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    link = ArchiveEntry("out", EntryKind.LINK, target="../../etc")
    archive = tmp_path / "project.tar"
    archive.write_bytes(write_header(link) + END)
    with pytest.raises(UsageError):
        unpack_code(archive, digest_entries([(link, "")]), tmp_path / "into" / "code")
    assert list((tmp_path / "into").iterdir()) == []


def test_only_a_new_or_an_empty_folder_is_a_target(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "deep/new", "empty"):
        check_target(tmp_path / name)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / "broken").symlink_to("nowhere")
    for name in ("file", "link", "broken", "."):
        with pytest.raises(Conflict, match="is there already, and not empty"):
            check_target(tmp_path / name)
