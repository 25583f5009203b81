"""A project in a tar: one state always gives the same bytes, and they give the state again."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.files.archives.entries import EntryKind
from riseml.files.archives.project_files import OpenTar, TarFiles, write_tar


def make_tar(path: Path) -> bytes:
    """Write a tar in another form than riseml's: its folders have entries of their own, its times have fractions."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in {"run.sh": b"echo\n", "data/large": b"x" * 100_000, "data/é": b""}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o755 if name == "run.sh" else 0o600
            member.mtime = 1000
            member.uname = "paul"
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("link")
        link.type = tarfile.SYMTYPE
        link.linkname = "run.sh"
        tar.addfile(link)
    return path.read_bytes()


def test_the_entries_of_a_tar_are_read_with_their_contents(tmp_path: Path) -> None:
    make_tar(tmp_path / "x.tar")
    entries = [(entry, b"".join(content)) for entry, content in TarFiles(tmp_path / "x.tar").read_files()]
    assert [(entry.path, entry.kind, entry.executable, len(content)) for entry, content in entries] == [
        ("run.sh", EntryKind.FILE, True, 5),
        ("data/large", EntryKind.FILE, False, 100_000),
        ("data/é", EntryKind.FILE, False, 0),
        ("link", EntryKind.LINK, False, 0),
    ]


def test_a_tar_that_is_written_again_stays_the_same(tmp_path: Path) -> None:
    make_tar(tmp_path / "x.tar")
    written = b"".join(write_tar(TarFiles(tmp_path / "x.tar")))
    assert b"".join(write_tar(OpenTar(io.BytesIO(written)))) == written
    with tarfile.open(fileobj=io.BytesIO(written)) as tar:
        assert tar.getnames() == ["run.sh", "data/large", "data/é", "link"]
        assert {(member.uname, member.uid) for member in tar} == {("", 0)}, "no owner travels"


@pytest.mark.parametrize("length", [100, 5000])
def test_a_tar_that_is_cut_off_is_refused(tmp_path: Path, length: int) -> None:
    data = make_tar(tmp_path / "x.tar")
    with pytest.raises(UsageError):
        b"".join(write_tar(OpenTar(io.BytesIO(data[:length]))))
