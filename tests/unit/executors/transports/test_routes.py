"""The way to an engine: which one a URL means, what its connections have, and what a failure tells the user."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.names import HostName
from riseml.executors.transports.routes import (
    Keepalive,
    SocketTransport,
    SshTransport,
    TcpTransport,
    Timeouts,
    Transport,
    find_plain_transport,
    find_transport,
)
from riseml.spec.pool.types import HostSpec
from riseml.spec.scalars.engine_url import parse_engine_url
from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class CountedEngine:
    """An engine at a unix socket that answers every request with an empty object, and counts its connections."""

    def __init__(self, path: Path) -> None:
        self.connections = 0
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(path))
        self._door.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._door.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: socket.socket) -> None:
        with caller:
            while caller.recv(65536):
                caller.sendall(ANSWER)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[CountedEngine]:
    """An engine at `engine.sock`."""
    made = CountedEngine(tmp_path / "engine.sock")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("url", "kind"),
    [("unix:///run/docker.sock", SocketTransport), ("tcp://gpu1:2375", TcpTransport), ("ssh://gpu1", SshTransport)],
)
def test_the_url_of_a_host_chooses_the_way(url: str, kind: type[Transport], tmp_path: Path) -> None:
    transport = find_transport(HostSpec(HostName("h1"), url), tmp_path, Timeouts())
    assert isinstance(transport, kind)
    transport.close()


@pytest.mark.parametrize(
    ("url", "kind"),
    [("unix:///run/docker.sock", SocketTransport), ("tcp://gpu1:2375", TcpTransport), ("no url", SocketTransport)],
)
def test_docker_host_chooses_the_way_without_a_pool(url: str, kind: type[Transport]) -> None:
    assert isinstance(find_plain_transport(url, Timeouts()), kind)


def test_docker_host_cannot_name_an_engine_behind_ssh() -> None:
    diagnosis = find_plain_transport("ssh://gpu1", Timeouts()).explain_failure(OSError("x"))
    assert "name it in pool.yml: `url: ssh://gpu1`" in diagnosis.hint


def test_one_connection_serves_requests_for_every_path(engine: CountedEngine, tmp_path: Path) -> None:
    client = SocketTransport(f"unix://{tmp_path}/engine.sock").connect("1.41", DEADLINE)
    for number in range(5):
        assert client.inspect_container(f"c{number}") == {}
    assert engine.connections == 1
    client.close()


def test_a_client_uses_no_proxy_of_the_environment(
    engine: CountedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    client = SocketTransport(f"unix://{tmp_path}/engine.sock").connect("1.41", DEADLINE)
    assert client.inspect_container("c1") == {}
    client.close()


def test_a_connection_over_tcp_notices_a_host_without_power() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = parse_engine_url(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        with TcpTransport(url, None, Keepalive(idle=7)).dial(DEADLINE) as connection:
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 7


@pytest.mark.parametrize(
    ("transport", "hint"),
    [
        (SocketTransport("unix:///none.sock"), "`docker info` asks it directly"),
        (TcpTransport(parse_engine_url("tcp://gpu1:2375"), None, Keepalive()), "is the host up"),
    ],
)
def test_a_failure_has_its_cause_and_what_the_user_can_do(transport: Transport, hint: str) -> None:
    diagnosis = transport.explain_failure(ConnectionRefusedError(111, "x"))
    assert diagnosis.cause == "connection refused"
    assert hint in diagnosis.hint


def test_an_engine_that_does_not_listen_is_not_dialled(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SocketTransport(f"unix://{tmp_path}/none.sock").dial(DEADLINE)
    url = parse_engine_url(f"tcp://127.0.0.1:{find_free_port()}")
    with pytest.raises(ConnectionRefusedError):
        TcpTransport(url, None, Keepalive()).dial(DEADLINE)
