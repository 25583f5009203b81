"""A project archive is unpacked into one folder, and nothing of it leaves that folder."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.executors.environments.project_files import copy_files, unpack_project
from riseml.files.archives.project_files import TarFiles

MTIME = 1_700_000_000


def folder(name: str) -> tarfile.TarInfo:
    """Return a folder as a member."""
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.mtime = tarfile.DIRTYPE, 0o755, MTIME
    return member


def file(name: str, mode: int = 0o644) -> tarfile.TarInfo:
    """Return an empty file as a member."""
    member = tarfile.TarInfo(name)
    member.mode, member.mtime = mode, MTIME
    return member


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    """Return a link as a member."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def pack_members(path: Path, members: Iterable[tarfile.TarInfo], content: bytes = b"") -> Path:
    """Write an archive whose files all have this content."""
    with tarfile.open(path, "w") as tar:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """An empty folder with a neighbour."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def test_files_folders_and_links_are_unpacked(tmp_path: Path, target: Path) -> None:
    members = [
        file("no-folder-before-it/b.txt"),
        folder("a"),
        folder("empty"),
        file("a/run.sh", 0o777),
        file("a/secret", 0o6440),
        link("a/up", "../no-folder-before-it"),
        link("here", "."),
        link("to-nothing", "none"),
        file("f\u00fcr J\udcfcrgen"),
    ]
    unpack_project(TarFiles(pack_members(tmp_path / "code.tar", members, b"text")), target)
    assert (target / "a" / "up" / "b.txt").read_bytes() == b"text"
    assert (target / "f\u00fcr J\udcfcrgen").read_bytes() == b"text"
    assert os.readlink(target / "to-nothing") == "none"
    assert [(target / "a" / name).stat().st_mode & 0o7777 for name in ("run.sh", "secret")] == [0o755, 0o644]
    assert [(target / name).stat().st_mtime for name in ("a/secret", "empty")] == [MTIME, MTIME]


def test_only_wanted_members_are_unpacked(tmp_path: Path, target: Path) -> None:
    code = pack_members(tmp_path / "code.tar", [file("a/needs.txt"), file("b"), link("out", "b")])
    unpack_project(TarFiles(code), target, {"a/needs.txt"})
    assert sorted(path.name for path in target.rglob("*")) == ["a", "needs.txt"]


OUTSIDE = "leads out of the project"


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        pytest.param([file("../outside/x")], OUTSIDE, id="a name that leaves"),
        pytest.param([file("/tmp/riseml-test-outside")], OUTSIDE, id="an absolute name"),
        pytest.param([folder("../target-2")], OUTSIDE, id="a folder that leaves"),
        pytest.param([link("out", "../outside")], OUTSIDE, id="a link that leaves"),
        pytest.param([link("out", "/etc")], OUTSIDE, id="an absolute link"),
        pytest.param([link("out", "../target-2")], OUTSIDE, id="a link to a sibling with the same beginning"),
        pytest.param(
            [folder("a/b"), link("a/b/top", "../.."), link("a/b/out", "top/../outside")],
            OUTSIDE,
            id="a link that leaves only when another link is resolved",
        ),
        pytest.param(
            [folder("a/b"), link("a/b/out", "top/../outside"), link("a/b/top", "../..")],
            OUTSIDE,
            id="the same, with the other link behind it",
        ),
        pytest.param([file("a"), link("b", "a", tarfile.LNKTYPE)], "is neither a file", id="a hard link"),
        pytest.param([link("pipe", "", tarfile.FIFOTYPE)], "is neither a file", id="a pipe"),
    ],
)
def test_a_member_that_leaves_the_folder_is_refused(
    tmp_path: Path, target: Path, members: list[tarfile.TarInfo], problem: str
) -> None:
    with pytest.raises(EngineError, match=problem) as raised:
        unpack_project(TarFiles(pack_members(tmp_path / "code.tar", members)), target)
    assert raised.value.permanent
    assert list((tmp_path / "outside").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["code.tar", "outside", "target"]


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([link("out", "../outside"), file("out/x")], id="a file below a link"),
        pytest.param([link("out", "../outside"), link("out/x", "y")], id="a link below a link"),
        pytest.param([file("a"), file("a")], id="a name twice"),
    ],
)
def test_nothing_is_written_through_a_link_or_over_a_file(
    tmp_path: Path, target: Path, members: list[tarfile.TarInfo]
) -> None:
    with pytest.raises(EngineError, match=r"is below a link|is there twice"):
        unpack_project(TarFiles(pack_members(tmp_path / "code.tar", members)), target)
    assert list((tmp_path / "outside").iterdir()) == []


def test_made_files_are_added_and_what_the_project_has_stays(tmp_path: Path, target: Path) -> None:
    made = tmp_path / "made"
    (made / "lib" / "inner").mkdir(parents=True)
    (made / "lib" / "inner" / "tool").write_text("made")
    (made / "lib" / "inner" / "tool").chmod(0o4755)
    (made / "train.py").write_text("changed by a step")
    (made / "link").symlink_to("/etc")
    os.mkfifo(made / "pipe")
    (target / "train.py").write_text("project")
    copy_files(made, target)
    assert sorted(os.listdir(target)) == ["lib", "link", "train.py"]
    assert (target / "train.py").read_text() == "project"
    assert os.readlink(target / "link") == "/etc"
    assert (target / "lib" / "inner" / "tool").stat().st_mode & 0o7777 == 0o755


def test_made_files_are_not_written_through_links_of_the_project(tmp_path: Path, target: Path) -> None:
    made = tmp_path / "made"
    for name in ("away", "file"):
        (made / name).mkdir(parents=True)
        (made / name / "x").write_text("made")
    (target / "away").symlink_to(tmp_path / "outside")
    (target / "file").write_text("project")
    copy_files(made, target)
    assert (os.listdir(tmp_path / "outside"), (target / "file").read_text()) == ([], "project")


def test_an_environment_without_steps_made_no_files(tmp_path: Path, target: Path) -> None:
    copy_files(tmp_path / "missing", target)
    assert os.listdir(target) == []


def test_a_file_that_is_not_an_archive_is_refused(tmp_path: Path, target: Path) -> None:
    (tmp_path / "code.tar").write_bytes(b"no archive" * 100)
    with pytest.raises(EngineError, match="the project's files cannot be unpacked"):
        unpack_project(TarFiles(tmp_path / "code.tar"), target)
