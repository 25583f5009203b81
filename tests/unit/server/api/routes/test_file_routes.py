"""The routes of files and outputs: what is cut goes on where it was, and long lists come in pages."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import httpx
import pytest

from riseml import wire
from riseml.base.errors import Conflict, NotFound, RisemlError, UsageError
from riseml.base.settings import Settings
from riseml.cli.commands.output_cleaning import _find_outputs
from riseml.client.exchange import Address, RetryPolicy
from riseml.client.file_client import FileClient, StoragePlace
from riseml.client.server_client import Client
from riseml.files.storage_files import ListRequest
from riseml.job_programs.folder_contents import FileUpload, read_pieces
from riseml.model import Experiment
from riseml.server.api.routes import file_routes
from riseml.server.app import make_application
from tests.unit.server.api.conftest import NOW, serve

BIG = bytes(range(256)) * 40_000  # 10 MB


class Scissors:
    """A relay before a server, which cuts connections after so many bytes; the other side takes all that passed."""

    def __init__(self, target: int) -> None:
        self.cuts: list[int] = []  # of the next connections
        self.passed = 0  # bytes in both directions
        self._target = target
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._door.getsockname()[1])
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        for one in (self._door, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in (self._door, *self._sockets):
            one.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._door.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [near, far]
                left = [self.cuts.pop(0) if self.cuts else 1 << 40]
                for run in (self._send, self._answer):
                    self._threads.append(threading.Thread(target=run, args=(near, far, left), daemon=True))
                    self._threads[-1].start()

    def _send(self, near: socket.socket, far: socket.socket, left: list[int]) -> None:
        """Pass on what the client sends. The server meets an end behind it, and closes when it has read all."""
        self._pass_on(near, far, left)
        with suppress(OSError):
            far.shutdown(socket.SHUT_WR)

    def _answer(self, near: socket.socket, far: socket.socket, left: list[int]) -> None:
        """Pass on what the server sends. The client meets the end only when the server has done with the connection.

        What the client still sends is read and dropped: its own deadline would end a `send` into a full buffer.
        """
        self._pass_on(far, near, left)
        for one in (far, near):
            with suppress(OSError):
                one.shutdown(socket.SHUT_WR)
                while one.recv(65536):
                    continue

    def _pass_on(self, source: socket.socket, target: socket.socket, left: list[int]) -> None:
        with suppress(OSError):
            while left[0] > 0 and (data := source.recv(65536)):
                target.sendall(data)
                left[0] -= len(data)
                self.passed += len(data)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[tuple[str, Scissors]]:
    settings = Settings(home, home / "output", home / "data", executor="process")
    made = make_application(settings, threading.Event())
    made.services.hosts.pool.observe_hosts(frozenset(), NOW)
    with serve(made.api) as url:
        scissors = Scissors(int(url.rpartition(":")[2]))
        yield f"http://127.0.0.1:{scissors.port}", scissors
        scissors.close()
    made.database.close()


@pytest.fixture
def scissors(served: tuple[str, Scissors]) -> Scissors:
    served[1].passed = 0
    return served[1]


@pytest.fixture
def file_server(served: tuple[str, Scissors]) -> Iterator[Client]:
    with Client(Address(None, served[0]), RetryPolicy(wait=lambda _: None)) as client:
        yield client


@pytest.fixture
def files(file_server: Client) -> FileClient:
    return file_server.open_files(StoragePlace("data"))


def content_of(path: Path, offset: int) -> Iterator[bytes]:
    """Yield a local file as `FileClient.write_file` wants it."""
    root = os.open(path.parent, os.O_RDONLY)
    try:
        _, *pieces, proof = read_pieces(root, path.name, offset, None)
    finally:
        os.close(root)
    yield from pieces
    yield proof[1:]


def send(files: FileClient, path: Path, target: str) -> None:
    order = FileUpload(target, "", path.stat().st_size, mtime=5 * 10**9)
    files.write_file(order, lambda offset: content_of(path, offset))


def test_a_content_that_is_cut_goes_on_where_it_was(
    file_server: Client, files: FileClient, scissors: Scissors, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "big").write_bytes(BIG)
    file_server.close()
    scissors.cuts = [6_000_000, 3_000_000]
    send(files, tmp_path / "big", "models/big")
    assert (home / "data/models/big").read_bytes() == BIG
    assert os.listdir(home / "data/models") == ["big"]
    assert (scissors.cuts, scissors.passed < 16_000_000) == ([], True)
    file_server.close()
    scissors.passed, scissors.cuts = 0, [6_000_000, 3_000_000]
    header, *pieces, proof = files.read_file("models/big")
    assert (int(header.split()[0]), b"".join(pieces), proof[:1]) == (len(BIG), BIG, b"0")
    assert (scissors.cuts, scissors.passed < 16_000_000) == ([], True)


def test_a_file_that_is_replaced_after_a_break_is_refused(
    file_server: Client, files: FileClient, scissors: Scissors, home: Path
) -> None:
    (home / "data").mkdir(exist_ok=True)
    (home / "data/x").write_bytes(BIG)
    file_server.close()
    scissors.cuts = [4_000_000]
    reading = files.read_file("x")
    next(reading)
    next(reading)
    (home / "data/x").write_bytes(BIG[1:])
    with pytest.raises(Conflict, match=r"data://x changed while it was copied"):
        list(reading)


def test_a_user_who_breaks_off_leaves_nothing(files: FileClient, home: Path, tmp_path: Path) -> None:
    def break_off(_: int) -> Iterator[bytes]:
        yield BIG[:2_000_000]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_file(FileUpload("half/x", "", len(BIG)), break_off)
    assert os.listdir(home / "data/half") == []

    def lie(_: int) -> Iterator[bytes]:
        yield b"abc"
        yield bytes(32)

    with pytest.raises(Conflict, match="did not arrive as it was sent"):
        files.write_file(FileUpload("half/x", "", 3), lie)
    assert os.listdir(home / "data/half") == []


def test_what_cannot_be_is_said_in_one_sentence(files: FileClient, served: tuple[str, Scissors], home: Path) -> None:
    (home / "data/folder").mkdir(parents=True, exist_ok=True)
    for kind, path in ((NotFound, "none"), (UsageError, "../data"), (UsageError, "n" * 256)):
        with pytest.raises(kind):
            files.list_files(ListRequest(path))
    with pytest.raises(UsageError, match="is a folder"):
        list(files.read_file("folder"))
    with pytest.raises(RisemlError, match="root of a storage"):
        files.remove_files("")
    with Client(Address(None, served[0])) as client, pytest.raises(NotFound, match="no experiment 7"):
        client.open_files(StoragePlace("output", "7")).list_files(ListRequest(""))


class Asking:
    """Asks for pages, and counts them."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.pages: list[int] = []  # how many outputs each has

    def list_outputs(self, query: Mapping[str, str]) -> wire.OutputPage:
        found = cast(wire.OutputPage, self.client.get("/v1/outputs", params=dict(query)).json())
        self.pages.append(len(found["outputs"]))
        return found


def test_a_set_that_takes_longer_than_a_request_may_comes_in_several_pages(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(experiment: Experiment, *_: object) -> list[wire.OutputView]:
        return [file_routes._make_output_view(experiment)]

    monkeypatch.setattr(file_routes, "now", lambda: NOW)
    monkeypatch.setattr(file_routes, "_measure_output", measure)
    asking = Asking(client)
    whole = [one["experiment"] for one in _find_outputs(cast(Client, asking), {})]
    assert (whole, asking.pages) == (["2.1", "2.2", "1"], [3])
    monkeypatch.setattr(file_routes, "_PAGE_SECONDS", -1.0)
    asking = Asking(client)
    assert [one["experiment"] for one in _find_outputs(cast(Client, asking), {})] == whole
    assert max(asking.pages) == 1
