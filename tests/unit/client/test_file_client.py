"""The client of files, with a server that is no riseml server. With a real one: server/api/test_files.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from riseml.base.errors import Unreachable
from riseml.client.exchange import Address, Exchange, RetryPolicy
from riseml.client.file_client import FileClient, StoragePlace
from riseml.files.storage_files import ListRequest
from tests.unit.cli.fake_server import FakeServer

FILE: dict[str, Any] = {
    "path": "runs/a.txt",
    "kind": "file",
    "size": 3,
    "mtime": 7,
    "executable": False,
    "target": None,
    "etag": "e",
}
FOLDER = FILE | {"path": "runs", "kind": "folder", "size": 0}


@pytest.fixture
def files(fake_server: FakeServer) -> Iterator[FileClient]:
    """A client of the output of experiment 4 that never waits."""
    exchange = Exchange(Address(fake_server.home / "server.sock"))
    yield FileClient(exchange, StoragePlace("output", "4"), RetryPolicy(wait=lambda _: None))
    exchange.close()


def test_a_storage_has_the_name_that_users_type() -> None:
    assert [str(place) for place in (StoragePlace("data"), StoragePlace("output", "4"))] == ["data:/", "output://4"]


def test_a_listing_is_asked_for_in_its_storage_and_again_after_a_break(
    files: FileClient, fake_server: FakeServer
) -> None:
    fake_server.answers["GET /files"] = (200, {"at": FOLDER, "entries": [FILE], "next": "b"})
    fake_server.lost = ["GET /files"]
    page = files.list_files(ListRequest("runs", limit=1))
    assert ([(file.path, file.size) for file in page.entries], page.next) == ([("runs/a.txt", 3)], "b")
    assert len(fake_server.asked) == 2
    assert "root=output&of=4&path=runs" in fake_server.asked[0]


def test_nothing_is_at_a_path_that_the_server_does_not_find(files: FileClient, fake_server: FakeServer) -> None:
    fake_server.refuse("GET /files", "NotFound", "there is no such file", status=404)
    assert files.look_at("runs/b.txt") is None


@pytest.mark.parametrize(
    "changes",
    [{"kind": "socket"}, {"size": -1}, {"path": "../../etc/passwd"}, {"path": "/etc/passwd"}],
    ids=["another kind", "a negative size", "a path that leaves", "an absolute path"],
)
def test_a_file_that_cannot_be_is_no_answer_of_riseml(
    files: FileClient, fake_server: FakeServer, changes: dict[str, object]
) -> None:
    fake_server.answers["GET /files"] = (200, {"at": FOLDER, "entries": [FILE | changes], "next": None})
    with pytest.raises(Unreachable, match="not as a riseml server does"):
        files.list_files(ListRequest("runs"))


def test_a_content_without_its_size_is_no_answer_of_riseml(files: FileClient, fake_server: FakeServer) -> None:
    fake_server.answers["GET /files/content"] = (200, "text")
    with pytest.raises(Unreachable, match="not as a riseml server does"):
        list(files.read_file("runs/a.txt"))
