"""One request and its answer: of a riseml server, of another program, and of one that is hostile, in bounded memory."""

from __future__ import annotations

import gzip
import io
import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from riseml import __version__
from riseml.base import errors
from riseml.base.settings import Settings
from riseml.client.answer_check import WIRE_NAMES
from riseml.client.exchange import Address, Exchange, RetryPolicy, read_address
from riseml.client.server_client import Client, LogQuery
from tests.unit.cli.fake_server import FakeServer, make_experiment

DEEP = "[" * 200_000


class EndlessAnswer:
    """An answer whose body never ends. It gives the same bytes again and again."""

    def __init__(self, status: int, piece: int = 1 << 20) -> None:
        self.status_code, self.is_success = status, status == 200
        self.piece = piece  # bytes at once
        self.headers: dict[str, str] = {}

    def read(self) -> bytes:
        raise MemoryError

    def iter_bytes(self) -> Iterator[bytes]:
        yield from itertools.repeat(b" " * self.piece)

    iter_raw = iter_bytes

    def __enter__(self) -> EndlessAnswer:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("answer", [DEEP, '{"error":' * 100_000, "1" * 5000], ids=["lists", "objects", "digits"])
def test_json_that_python_cannot_read_is_not_an_answer_of_riseml(
    client: Client, fake_server: FakeServer, answer: str, status: int
) -> None:
    fake_server.answers["GET /server"] = (status, answer)
    with pytest.raises(errors.Unreachable, match="not as a riseml server does"):
        client.get_server()


@pytest.mark.parametrize(
    ("answer", "difference"),
    [
        ([], "it is a list"),
        ({}, "experiments is absent"),
        ({"experiments": [make_experiment(), make_experiment(jobs=3)]}, r"experiments\[1\].jobs is a number"),
    ],
    ids=str,
)
def test_an_answer_of_another_shape_is_named_with_the_server_and_the_field(
    client: Client, fake_server: FakeServer, answer: object, difference: str
) -> None:
    fake_server.answers["GET /experiments"] = (200, answer)
    with pytest.raises(errors.Unreachable, match=rf"server.sock answered 200, but .* does: {difference}$") as raised:
        client.list_experiments()
    assert raised.value.hint == "`riseml server stop`, then try again"
    with Client(Address(None, fake_server.url)) as remote, pytest.raises(errors.Unreachable) as raised:
        remote.list_experiments()
    assert raised.value.message.startswith(fake_server.url)
    assert f"whether the server has the version of this command ({__version__})" in str(raised.value.hint)


def test_a_server_of_another_version_may_lack_keys(client: Client, fake_server: FakeServer) -> None:
    fake_server.server["version"] = "1.9.0"
    del fake_server.server["searches"]
    fake_server.answers["GET /experiments"] = (200, {"experiments": [{"id": "4"}]})
    assert client.get_server()["version"] == "1.9.0"
    assert [sorted(experiment) for experiment in client.list_experiments()] == [["id"]]
    fake_server.server["version"] = __version__
    client.get_server()
    with pytest.raises(errors.Unreachable, match=r"experiments\[0\].user is absent"):
        client.list_experiments()


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    exchange = Exchange(Address(Path("/x/server.sock")))
    monkeypatch.setattr(exchange, "open_response", lambda *_: EndlessAnswer(status))
    with pytest.raises(errors.Unreachable, match="not as a riseml server does"):
        exchange.request_answer("GET", "/server", WIRE_NAMES.ServerView)


@pytest.mark.parametrize(
    "line", [DEEP, "{no", "1" * 5000, '{"type": "end"}'], ids=["lists", "text", "digits", "no cursor"]
)
def test_an_invalid_log_is_not_an_answer_of_riseml(fake_server: FakeServer, line: str) -> None:
    fake_server.answers["GET /experiments/4/logs"] = (200, f"{line}\n")
    address, moments = Address(fake_server.home / "server.sock"), iter(range(0, 1000, 50))
    with (
        Client(address, RetryPolicy(60, lambda: next(moments), lambda _: None)) as client,
        pytest.raises(errors.Unreachable, match="not as a riseml server does"),
    ):
        list(client.stream_log("4", LogQuery(follow=False)))


def test_an_entry_of_a_log_without_end_is_not_read_to_its_end() -> None:
    exchange = Exchange(Address(Path("/x/server.sock")))
    with pytest.raises(errors.Unreachable, match="not as a riseml server does"):
        list(exchange.read_entries(EndlessAnswer(200, 1 << 24)))


def test_a_body_that_cannot_be_unpacked_is_a_broken_connection() -> None:
    body = gzip.compress(b"{}")[:8] + b"x" * 20
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"

    def answer(listening: socket.socket) -> None:
        door, _ = listening.accept()
        with closing(door):
            door.recv(1 << 16)
            door.sendall(head.encode() + body)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=[listening], daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with Client(Address(None, url)) as client, pytest.raises(errors.Unreachable, match="broke the connection"):
            client.get_server()
        thread.join()


SETTINGS = Settings(Path("/home/x"), Path("/o"), Path("/d"))


@pytest.mark.parametrize("answer", [(502, "<html>Bad Gateway</html>"), (500, []), (404, {"detail": "?"}), (200, "no")])
def test_an_answer_of_another_program_is_unreachable(
    client: Client, fake_server: FakeServer, answer: tuple[int, object]
) -> None:
    fake_server.answers["GET /server"] = answer
    with pytest.raises(errors.Unreachable, match="not as a riseml server does"):
        client.get_server()


def test_no_socket_and_a_dead_socket_are_unreachable(tmp_path: Path) -> None:
    dead = tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(dead))
    for path in (tmp_path / "none.sock", dead):
        with Client(Address(path)) as client, pytest.raises(errors.Unreachable) as raised:
            client.get_server()
        assert "riseml server start" in (raised.value.hint or "")


def test_riseml_server_replaces_the_socket() -> None:
    assert read_address(SETTINGS, {}) == Address(SETTINGS.socket)
    environ = {"RISEML_SERVER": "https://r.example.org/", "RISEML_API_KEY": "secret"}
    address = read_address(SETTINGS, environ)
    assert (address.socket, address.url, address.key) == (None, "https://r.example.org", "secret")
    assert "secret" not in repr(address)


@pytest.mark.parametrize("url", ["r.example.org", "ftp://x", "unix:///x"])
def test_a_server_variable_that_is_not_a_url_is_refused(url: str) -> None:
    with pytest.raises(errors.UsageError, match="RISEML_SERVER"):
        read_address(SETTINGS, {"RISEML_SERVER": url})


def test_the_api_key_is_sent(fake_server: FakeServer) -> None:
    with Client(Address(fake_server.home / "server.sock", key="secret")) as client:
        client.get_server()
    assert fake_server.headers["authorization"] == "Bearer secret"


def test_a_socket_of_another_user_is_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("socket.socket.connect", refuse)
    with pytest.raises(errors.Refused, match="belongs to another user: Permission denied"):
        client.get_server()


def test_the_files_of_a_project_are_taken_up_to_a_limit(client: Client, fake_server: FakeServer) -> None:
    fake_server.answers["GET /snapshots/ab"] = (200, "x" * 100)
    target = io.BytesIO()
    client.fetch_snapshot("ab", target, 100)
    assert target.getvalue() == b"x" * 100
    with pytest.raises(errors.Refused, match="sent more than 99 bytes"):
        client.fetch_snapshot("ab", io.BytesIO(), 99)
