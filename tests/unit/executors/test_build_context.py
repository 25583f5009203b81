"""The build context holds the project files that install steps may read, whatever their names are."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from riseml.archives.project_files import TarFiles
from riseml.executors.docker.build_context import DOCKERFILE, write_build_context
from riseml.model import Image
from riseml.planning.image import CONTEXT_FOLDER

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


def test_files_of_every_name_are_below_the_context_folder(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "s.tar")
    image = Image("base:1", ("pip install -r needs.txt",), (*NAMES, "größerer-link"), "ab12")
    context = io.BytesIO()
    write_build_context(context, image, TarFiles(tmp_path / "s.tar"), "base:1")
    context.seek(0)
    with tarfile.open(fileobj=context) as tar:
        make_dockerfile, *files, link = tar.getmembers()
        assert make_dockerfile.name == DOCKERFILE
        assert [member.name for member in files] == [f"{CONTEXT_FOLDER}/{name}" for name in NAMES]
        assert [member.size for member in files] == [len(name) for name in NAMES]
        assert {(member.mode, member.mtime) for member in files} == {(0o755, 1)}
        assert (link.name, link.linkname) == (f"{CONTEXT_FOLDER}/größerer-link", "größe.txt")


def test_a_context_without_a_project_has_the_dockerfile_only() -> None:
    context = io.BytesIO()
    write_build_context(context, Image("base:1", ("true",), (), "ab12"), None, "base:1")
    context.seek(0)
    with tarfile.open(fileobj=context) as tar:
        assert tar.getnames() == [DOCKERFILE]
