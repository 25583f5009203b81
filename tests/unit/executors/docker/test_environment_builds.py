"""The first step of an environment gets the project files that the steps may read, whatever their names are."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from riseml.executors.docker.environment_builds import write_step_files
from riseml.files.archives.project_files import TarFiles
from riseml.model import Image
from tests.support.archives import pack

NAMES = ["needs.txt", "größe.txt", "ü/ä.txt", "x" * 101, "x" * 93 + "/y", "deep/" * 60 + "ö", "\udcff\udcfe"]


def write_snapshot(path: Path) -> None:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in [*NAMES, "secret.txt"]:
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(name), 0o755, 1.5
            tar.addfile(member, io.BytesIO(b"x" * len(name)))
        link = tarfile.TarInfo("größerer-link")
        link.type, link.linkname = tarfile.SYMTYPE, "größe.txt"
        tar.addfile(link)


def write_files(image: Image, project: TarFiles | None) -> tuple[io.BytesIO, str]:
    """Return the archive for the first step, and its digest."""
    archive = io.BytesIO()
    digest = write_step_files(archive, image, project)
    archive.seek(0)
    return archive, digest


def test_files_of_every_name_are_below_the_working_folder(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "s.tar")
    image = Image("base:1", ("pip install -r needs.txt",), (*NAMES, "größerer-link"), "ab12")
    archive, _ = write_files(image, TarFiles(tmp_path / "s.tar"))
    with tarfile.open(fileobj=archive) as tar:
        *files, link = tar.getmembers()
        assert [member.name for member in files] == [f"code/{name}" for name in NAMES]
        assert [member.size for member in files] == [len(name) for name in NAMES]
        assert {(member.mode, member.mtime) for member in files} == {(0o755, 1)}
        assert (link.name, link.linkname) == ("code/größerer-link", "größe.txt")


def test_without_files_that_steps_read_the_archive_is_empty(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "s.tar")
    for project in (None, TarFiles(tmp_path / "s.tar")):
        archive, _ = write_files(Image("base:1", ("true",), (), "ab12"), project)
        with tarfile.open(fileobj=archive) as tar:
            assert tar.getnames() == []


def test_the_digest_of_the_files_depends_on_what_steps_read_and_not_on_times(tmp_path: Path) -> None:
    image = Image("base:1", ("cat a",), ("a",), "ab12")
    digests = set()
    for number, files in enumerate([{"a": "1"}, {"a": "1", "b": "2"}, {"a": "3"}]):
        (tmp_path / f"{number}.tar").write_bytes(pack(files))
        digests.add(write_files(image, TarFiles(tmp_path / f"{number}.tar"))[1])
    assert len(digests) == 2
