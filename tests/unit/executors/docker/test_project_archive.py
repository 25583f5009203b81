"""The project archive for a container: the same files below the working directory, whatever their names."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.executors.docker.project_archive import pack_working_directory
from riseml.files.archives.project_files import TarFiles
from riseml.model import Owner

OWNER = Owner("paul", 1234, 5678)
NAMES = [
    "train.py",
    "ü/ä.txt",
    "deep/" * 30 + "file",
    "x" * 101,
    "x" * 93 + "/y",
    "two  blanks=\n\\x",
    "a" * 250 + "/ö",
]


def write(path: Path, names: list[str], content: bytes) -> None:
    """Write a snapshot as tarfile does."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime, member.uid, member.gid = len(content), 0o755, 1.5, 99, 99
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "train.py"
        tar.addfile(link)


@pytest.mark.parametrize("size", [0, 1, 512, 700_001])
def test_the_same_files_below_the_working_directory(tmp_path: Path, size: int) -> None:
    content = b"x" * size
    write(tmp_path / "s.tar", NAMES, content)
    data = b"".join(pack_working_directory(TarFiles(tmp_path / "s.tar"), OWNER))
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        folder, own, home, *files, link = tar.getmembers()
        assert (folder.name, own.name, home.name) == ("code", "code/.riseml", "tmp/home")
        for one in (folder, own, home):
            assert (one.isdir(), one.mode, one.uid, one.gid) == (True, 0o755, 1234, 5678)
        assert [member.name for member in files] == [f"code/{name}" for name in NAMES]
        assert {(member.mode, member.mtime, member.uid, member.gid) for member in files} == {(0o755, 1, 1234, 5678)}
        for member in files:
            found = tar.extractfile(member)
            assert found is not None, "a plain file"
            assert found.read() == content
        assert (link.name, link.linkname, link.uid) == ("code/link", "train.py", 1234)


def test_a_snapshot_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "s.tar", ["train.py"], b"x" * 5000)
    with (tmp_path / "s.tar").open("r+b") as file:
        file.truncate(2000)
    with pytest.raises(EngineError, match="cut off"):
        list(pack_working_directory(TarFiles(tmp_path / "s.tar"), OWNER))
