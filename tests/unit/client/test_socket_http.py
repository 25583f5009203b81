"""HTTP over a unix socket, against a server that says exactly what a test tells it to say."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from riseml.client.answer_reader import AnswerCut
from riseml.client.socket_http import AnswerOverdue, SocketAnswer, SocketConnections, make_request

_PATIENCE = 60.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Name: a\r\n\r\nok"
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
GET = make_request("GET", "/x", {})

Talk = Callable[[socket.socket], None]


class Door:
    """A unix socket on which each connection is answered by the next one of `talks`."""

    def __init__(self, path: Path, talks: list[Talk]) -> None:
        self._path = str(path)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self._path)
        self._listener.listen()
        self.dialled = 0
        self.closed = threading.Semaphore(0)  # connections that the server has closed
        self.connections = SocketConnections(self._dial)
        self._thread = threading.Thread(target=self._serve, args=(talks,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.connections.close()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends the wait for another connection
        self._thread.join(_PATIENCE)
        self._listener.close()

    def ask(self) -> bytes:
        with self.connections.open_answer(GET, _PATIENCE) as answer:
            return answer.read()

    def _dial(self) -> socket.socket:
        self.dialled += 1
        door = socket.socket(socket.AF_UNIX)
        door.connect(self._path)
        return door

    def _serve(self, talks: list[Talk]) -> None:
        for talk in talks:
            try:
                door, _ = self._listener.accept()
            except OSError:  # the test is over
                return
            with door, suppress(OSError):  # the client closes first
                talk(door)
            self.closed.release()


@pytest.fixture
def open_door(tmp_path: Path) -> Iterator[Callable[..., Door]]:
    doors: list[Door] = []

    def make(*talks: Talk) -> Door:
        doors.append(Door(tmp_path / f"{len(doors)}.sock", list(talks)))
        return doors[-1]

    yield make
    for door in doors:
        door.close()


def hear(door: socket.socket) -> bytes:
    """Return the head of a request."""
    heard = b""
    while b"\r\n\r\n" not in heard and (piece := door.recv(1 << 16)):
        heard += piece
    return heard


def say(*answers: bytes) -> Talk:
    """Answer so many requests, and close the connection."""

    def talk(door: socket.socket) -> None:
        for answer in answers:
            hear(door)
            door.sendall(answer)

    return talk


def test_one_connection_serves_many_requests(open_door: Callable[..., Door]) -> None:
    empty = b"HTTP/1.1 204 No Content\r\n\r\n"
    door = open_door(say(OK, CHUNKS, empty, OK))
    assert [door.ask() for _ in range(4)] == [b"ok", b"abcde", b"", b"ok"]
    assert door.dialled == 1


def test_what_a_request_says(open_door: Callable[..., Door]) -> None:
    heard: list[bytes] = []

    def talk(door: socket.socket) -> None:
        while head := hear(door):
            heard.append(head)
            door.sendall(OK)

    door = open_door(talk)
    query: dict[str, Any] = {"of": ["1", "2"], "deep": True, "name": "a b&c"}
    with door.connections.open_answer(
        make_request("POST", "/x", {"A": "b"}, params=query, json={"ä": 1}), _PATIENCE
    ) as answer:
        assert answer.read() == b"ok"
    with door.connections.open_answer(make_request("POST", "/y", {}), _PATIENCE) as answer:
        assert (answer.status_code, answer.is_success, answer.headers["x-name"]) == (200, True, "a")
    assert heard[0].startswith(b"POST /x?of=1&of=2&deep=true&name=a+b%26c HTTP/1.1\r\nHost: riseml\r\n")
    assert b"\r\nA: b\r\n" in heard[0]
    assert b"Content-Length: 8\r\n\r\n" in heard[0]
    assert b"Content-Length: 0\r\n\r\n" in heard[1]


def test_a_connection_that_the_server_closed_meanwhile_is_not_used(open_door: Callable[..., Door]) -> None:
    door = open_door(say(OK), say(OK))
    assert door.ask() == b"ok"
    assert door.closed.acquire(timeout=_PATIENCE)
    assert door.ask() == b"ok"
    assert door.dialled == 2


def answer_one_of_two(door: socket.socket) -> None:
    """Answer the first request, and close the connection when the second one has come."""
    hear(door)
    door.sendall(OK)
    hear(door)


def test_a_get_whose_idle_connection_closes_without_an_answer_is_sent_once_more(open_door: Callable[..., Door]) -> None:
    door = open_door(answer_one_of_two, say(OK))
    assert [door.ask(), door.ask()] == [b"ok", b"ok"]
    assert door.dialled == 2


def test_a_post_whose_idle_connection_closes_is_cut(open_door: Callable[..., Door]) -> None:
    door = open_door(answer_one_of_two)
    door.ask()
    with pytest.raises(AnswerCut), door.connections.open_answer(make_request("POST", "/x", {}), _PATIENCE):
        pass
    assert door.dialled == 1


def test_an_answer_that_is_not_read_closes_its_connection(open_door: Callable[..., Door]) -> None:
    door = open_door(say(CHUNKS), say(OK))
    with door.connections.open_answer(GET, _PATIENCE):
        pass
    assert door.ask() == b"ok"
    assert door.dialled == 2


@pytest.mark.parametrize("length", [0, 20, len(OK) - 1, len(CHUNKS) - 8, len(CHUNKS) - 5])
@pytest.mark.parametrize("whole", [OK, CHUNKS])
def test_an_answer_that_breaks_off_is_cut(open_door: Callable[..., Door], whole: bytes, length: int) -> None:
    if length < len(whole):
        with pytest.raises(AnswerCut):
            open_door(say(whole[:length])).ask()


@pytest.mark.parametrize(
    "nonsense", [b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"]
)
def test_an_answer_of_another_program_is_cut(open_door: Callable[..., Door], nonsense: bytes) -> None:
    with pytest.raises(AnswerCut):
        open_door(say(nonsense)).ask()


def test_a_server_that_says_nothing_is_overdue(open_door: Callable[..., Door]) -> None:
    done = threading.Event()
    door = open_door(lambda _: void(done.wait(_PATIENCE)))
    with pytest.raises(AnswerOverdue), door.connections.open_answer(GET, 0.01):
        pass
    done.set()


def test_a_refusal_comes_through_before_the_body_was_read(open_door: Callable[..., Door]) -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig"
    body = (b"x" * 65536 for _ in range(1000))
    door = open_door(say(refusal))
    with door.connections.open_answer(make_request("PUT", "/x", {}, content=body), _PATIENCE) as answer:
        assert (answer.status_code, answer.read()) == (413, b"big")


def test_pieces_are_sent_in_chunks_and_their_errors_are_their_own(open_door: Callable[..., Door]) -> None:
    heard: list[bytes] = []

    def talk(door: socket.socket) -> None:
        while piece := door.recv(1 << 16):
            heard.append(piece)
            if b"".join(heard).endswith(b"0\r\n\r\n"):
                door.sendall(OK)

    def fail() -> Iterator[bytes]:
        yield b"abc"
        raise FileNotFoundError

    door = open_door(talk, talk)
    with door.connections.open_answer(make_request("PUT", "/x", {}, content=[b"abc", b"", b"d"]), _PATIENCE) as answer:
        assert answer.read() == b"ok"
    assert b"".join(heard).endswith(b"\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n")
    heard.clear()
    with (
        pytest.raises(FileNotFoundError),
        door.connections.open_answer(make_request("PUT", "/x", {}, content=fail()), _PATIENCE),
    ):
        pass
    door.close()
    assert not b"".join(heard).endswith(b"0\r\n\r\n")


def test_two_threads_have_two_connections_and_close_ends_both(open_door: Callable[..., Door]) -> None:
    begun = threading.Barrier(3)
    ends: list[str] = []

    def talk(door: socket.socket) -> None:
        hear(door)
        both.append(door.dup())  # stays open after the end of the talk
        door.sendall(CHUNKS[:-10])

    def read() -> None:
        try:
            with door.connections.open_answer(GET, _PATIENCE) as answer:
                pieces = answer.iter_bytes()
                next(pieces)
                begun.wait(_PATIENCE)
                list(pieces)
        except AnswerCut:
            ends.append("cut")

    both: list[socket.socket] = []
    door = open_door(talk, talk)
    readers = [threading.Thread(target=read, daemon=True) for _ in range(2)]
    for reader in readers:
        reader.start()
    begun.wait(_PATIENCE)
    door.connections.close()
    for reader in readers:
        reader.join(_PATIENCE)
    for one in both:
        one.close()
    assert ends == ["cut", "cut"]
    assert door.dialled == 2


def test_close_ends_a_request_whose_connection_is_not_open_yet() -> None:
    def dial() -> socket.socket:
        connections.close()
        return client

    client, server = socket.socketpair()
    connections = SocketConnections(dial)
    with server, pytest.raises(AnswerCut), connections.open_answer(GET, _PATIENCE):
        pass
    assert client.fileno() < 0


def void(_: object) -> None:
    """Take the value of a lambda."""


def test_a_whole_body_is_read_once(open_door: Callable[..., Door]) -> None:
    door = open_door(say(OK))
    with door.connections.open_answer(GET, _PATIENCE) as answer:
        assert isinstance(answer, SocketAnswer)
        assert answer.read() == answer.read() == b"ok"
