"""Digest and tar of a project."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import stat
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riseml.base.errors import UsageError
from riseml.files.archives.entries import ArchiveEntry
from riseml.files.project import archive
from riseml.files.project.archive import pack_snapshot, take_snapshot
from riseml.files.project.listing import Surroundings, list_project_files
from tests.unit.files.project.builders import fill_folder, list_paths, open_tar

NAMES = (
    st.binary(min_size=1, max_size=40)
    .map(lambda raw: raw.replace(b"/", b"_").replace(b"\0", b"_"))
    .filter(lambda raw: raw not in (b".", b"..", b".git", b".gitignore", b".risemlignore"))
)


def test_the_tar_is_the_project(tmp_path: Path) -> None:
    fill_folder(tmp_path, "a.py", "sub/deep/b.py")
    (tmp_path / "run.sh").write_bytes(b"x" * 700_001)
    (tmp_path / "run.sh").chmod(0o700)
    (tmp_path / "zero").touch()
    os.utime(tmp_path / "a.py", (1, 1_700_000_000))
    with open_tar(tmp_path) as tar:
        members = {member.name: member for member in tar}
        assert list(members) == ["a.py", "run.sh", "sub/deep/b.py", "zero"]
        extracted = tar.extractfile("run.sh")
        assert extracted is not None
        assert extracted.read() == b"x" * 700_001
    assert [stat.S_IMODE(members[name].mode) for name in ("a.py", "run.sh")] == [0o644, 0o755]
    assert {(member.uid, member.gid) for member in members.values()} == {(0, 0)}
    assert members["a.py"].mtime == 1_700_000_000


@given(names=st.sets(NAMES, min_size=1, max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_name_survives(tmp_path_factory: pytest.TempPathFactory, names: set[bytes]) -> None:
    folder = os.fsencode(tmp_path_factory.mktemp("names"))
    for name in names:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(name)
    with open_tar(Path(os.fsdecode(folder))) as tar:
        assert [os.fsencode(name) for name in tar.getnames()] == sorted(names)


def test_a_long_path_survives(tmp_path: Path) -> None:
    path = "/".join(["d" * 100] * 5) + "/" + "f" * 200
    fill_folder(tmp_path, path)
    with open_tar(tmp_path) as tar:
        assert tar.getnames() == [path]


def test_the_digest_names_the_content(tmp_path: Path) -> None:
    fill_folder(tmp_path, "a", "b")
    (tmp_path / "link").symlink_to("a")
    digests = [take_snapshot(list_project_files(tmp_path)).digest]

    def changed() -> bool:
        digests.append(take_snapshot(list_project_files(tmp_path)).digest)
        return digests[-1] not in digests[:-1]

    os.utime(tmp_path / "a", (5, 5))
    (tmp_path / "b").chmod(0o600)
    assert not changed()
    (tmp_path / "b").chmod(0o755)
    assert changed()
    (tmp_path / "a").write_text("other")
    assert changed()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("b")
    assert changed()
    (tmp_path / "a").rename(tmp_path / "c")
    assert changed()
    (tmp_path / "empty").mkdir()
    assert changed()


@pytest.mark.parametrize("content", ["other and longer", "x", "aB"])
def test_a_file_that_changes_after_the_snapshot_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "a").write_text("ab")
    snapshot = take_snapshot(list_project_files(tmp_path))
    (tmp_path / "a").write_text(content)
    with pytest.raises(UsageError, match="a changed while"):
        list(pack_snapshot(snapshot))


def test_a_file_that_grows_is_sent_as_it_was_when_it_was_listed(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("line 1\n")
    listing = list_project_files(tmp_path)
    for number in (2, 3):
        with path.open("a") as file:
            file.write(f"line {number}\n")
        if number == 2:
            snapshot = take_snapshot(listing)
    with tarfile.open(fileobj=io.BytesIO(b"".join(pack_snapshot(snapshot)))) as tar:
        content = tar.extractfile("train.log")
        assert content is not None
        assert content.read() == b"line 1\n"


def test_a_file_that_is_written_to_while_it_is_read_is_read_until_two_readings_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "notebook.ipynb"
    path.write_text("0" * 10)
    listing = list_project_files(tmp_path)
    states = iter("1233")

    def write_meanwhile(file: int, entry: ArchiveEntry) -> Iterator[bytes]:
        path.write_text(next(states) * 10)
        yield from read_content(file, entry)
        os.utime(path)

    read_content = archive._read_content
    monkeypatch.setattr(archive, "_read_content", write_meanwhile)
    found = take_snapshot(listing).entries[0].content
    assert found == hashlib.sha256(b"3" * 10).hexdigest()


def test_files_that_are_not_wanted_are_left_out(tmp_path: Path) -> None:
    fill_folder(tmp_path, "train.log", "train.py")
    seen = (tmp_path / "train.log").stat()
    listing = list_project_files(tmp_path, around=Surroundings(outputs=frozenset({(seen.st_dev, seen.st_ino)})))
    assert [entry.path for entry in listing.entries] == ["train.py"]
    assert listing.left_out == ("train.log is this command's own output, and is not sent",)


def test_a_file_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("ab")
    snapshot = take_snapshot(list_project_files(tmp_path))
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="a changed while"):
        list(pack_snapshot(snapshot))


def test_a_large_file_is_packed_in_pieces(tmp_path: Path) -> None:
    with open(tmp_path / "big", "wb") as file:
        file.truncate(64 * 2**20)
    tracemalloc.start()
    try:
        total = sum(len(piece) for piece in pack_snapshot(take_snapshot(list_project_files(tmp_path))))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total > 64 * 2**20
    assert peak < 8 * 2**20


@pytest.mark.parametrize("end", ["removed", "a folder", "a link", "a socket", "shorter", "longer", "other"])
def test_a_file_that_becomes_something_else_is_named(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"x" * 1000)
    listing = list_project_files(tmp_path)
    snapshot = take_snapshot(listing)
    path.unlink()
    match end:
        case "a folder":
            path.mkdir()
        case "a link":
            (tmp_path.parent / "outside").write_bytes(b"x" * 1000)
            path.symlink_to("../outside")
        case "a socket":
            _bind(path)
        case "shorter" | "longer" | "other":
            path.write_bytes(b"y" * {"shorter": 10, "longer": 2000, "other": 1000}[end])
    with pytest.raises(UsageError, match=r"a\.bin changed while the project was being synced") as raised:
        b"".join(pack_snapshot(snapshot))
    assert raised.value.hint == "run the command again, or add the file to .risemlignore if the jobs do not need it"
    if end not in ("other", "longer"):
        with pytest.raises(UsageError, match=r"a\.bin changed"):
            take_snapshot(listing)


def _bind(path: Path) -> None:
    """Bind a socket at a path that may be too long for a socket address."""
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(path.name)
    finally:
        os.chdir(here)


def test_a_name_of_255_bytes_and_a_leading_dash(tmp_path: Path) -> None:
    fill_folder(tmp_path, "n" * 255, "-rf", "--help", " ", "a\nb", "\t", "*", "'\"$(id)`")
    with open_tar(tmp_path) as tar:
        assert sorted(tar.getnames()) == sorted(list_paths(tmp_path))
        assert len(tar.getnames()) == 8
