"""A folder of this machine as one end of a copy: it lists, reads and writes, and follows no link below it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.errors import NotFound, Refused, UsageError
from riseml.client.copying.sides import LocalEndpoint, split_local
from riseml.files.storage_files import ListRequest
from riseml.job_programs.folder_contents import FileUpload


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[LocalEndpoint]:
    made = LocalEndpoint(tmp_path)
    yield made
    made.close()


def test_what_was_written_is_listed_and_read(endpoint: LocalEndpoint, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"hello")
    header, content, proof = endpoint.read_file("source")
    assert (header.split()[0], content) == (b"5", b"hello")
    order = FileUpload("sub/model.pt", "", 5, mtime=10**18, executable=True)
    endpoint.write_file(order, lambda start: iter([content[:2], content[2:], proof[1:]]))
    written = tmp_path / "sub" / "model.pt"
    assert (written.read_bytes(), written.stat().st_mtime_ns) == (b"hello", 10**18)
    assert os.access(written, os.X_OK)
    entries = endpoint.list_files(ListRequest("", deep=True)).entries
    assert [entry.path for entry in entries] == ["source", "sub", "sub/model.pt"]


def test_a_copy_that_breaks_leaves_no_part(endpoint: LocalEndpoint, tmp_path: Path) -> None:
    def break_off(start: int) -> Iterator[bytes]:
        yield b"he"
        raise ConnectionError("the server is gone")

    with pytest.raises(ConnectionError):
        endpoint.write_file(FileUpload("model.pt", "", 5), break_off)
    assert list(tmp_path.iterdir()) == []


def test_no_link_below_the_folder_is_followed(endpoint: LocalEndpoint, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(Refused):
        endpoint.write_file(FileUpload("link/x", "", 1), lambda start: iter([b"x"]))
    assert list(outside.iterdir()) == []
    assert endpoint.look_at("none") is None


def test_a_folder_that_is_not_there_or_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("none", "file"):
        with pytest.raises(NotFound, match=f"there is no folder .*{name}"):
            LocalEndpoint(tmp_path / name)


@pytest.mark.parametrize(
    ("path", "folder", "name"), [("a/b", "a", "b"), ("b", ".", "b"), ("/a/b/", "/a", "b"), ("/usr/lib/..", "/", "usr")]
)
def test_a_path_is_a_folder_and_a_name(path: str, folder: str, name: str) -> None:
    assert split_local(Path(path)) == (Path(folder), name)


def test_a_path_without_a_name_is_refused() -> None:
    with pytest.raises(UsageError, match="has no name of its own"):
        split_local(Path("/"))
