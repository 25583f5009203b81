"""HTTP answers, read from a socket pair: in pieces of any size, and from any program, also a hostile one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.client.answer_reader import AnswerCut, AnswerReader
from riseml.client.socket_http import SocketConnections, make_request

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKS += b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"


class CutDoor:
    """Gives the bytes of answers in pieces of these sizes, the last size for the rest; and then nothing."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._pieces = self._cut(data, sizes)

    def recv(self, most: int) -> bytes:
        return next(self._pieces, b"")[:most]

    @staticmethod
    def _cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
        at = 0
        for size in sizes:
            yield data[at : at + size]
            at += size
            if at >= len(data):
                return
        yield data[at:]


def read_answer(reader: AnswerReader, method: str = "GET") -> tuple[int, bytes]:
    status = reader.read_head(method).status
    return status, b"".join(iter(reader.read_piece, b""))


def make_reader(data: bytes, sizes: list[int]) -> AnswerReader:
    return AnswerReader(CutDoor(data, sizes))  # type: ignore[arg-type]  # it has what is used of a socket


@settings(max_examples=50)
@given(st.lists(st.integers(1, 30), max_size=20))
def test_answers_are_read_however_they_are_cut(sizes: list[int]) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
    reader = make_reader(OK + CHUNKS + b"HTTP/1.1 100 Continue\r\n\r\n" + head + OK, sizes)
    assert read_answer(reader) == (200, b"ok")
    assert read_answer(reader) == (200, b"abc0123456789")
    assert read_answer(reader, "HEAD") == (200, b"")
    assert read_answer(reader) == (200, b"ok")
    assert reader.is_complete


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.0 200 OK\r\nContent-Length: 1",
        b"HTTP/1.1 20 OK\r\nContent-Length: 1",
        b"HTTP/1.1 2000 OK\r\nContent-Length: 1",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1_0",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0x1",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 16,
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 17),
    ],
    ids=lambda head: head[:60].decode(),
)
def test_what_no_server_of_riseml_says_is_cut(head: bytes) -> None:
    with pytest.raises(AnswerCut):
        make_reader(head + b"\r\n\r\n1", []).read_head("GET")


@pytest.mark.parametrize("chunk", [b"-1\r\n", b"0x1\r\n", b"\r\n", b"1\r\nab\r\n", b"1" * 4096])
def test_a_chunk_that_is_none_is_cut(chunk: bytes) -> None:
    reader = make_reader(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk, [])
    with pytest.raises(AnswerCut):
        read_answer(reader)


def test_an_answer_that_closes_its_connection_is_the_last_one() -> None:
    reader = make_reader(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), [])
    assert read_answer(reader) == (200, b"ok")
    assert not reader.is_complete


def test_a_piece_does_not_wait_for_what_follows_it() -> None:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        reader = AnswerReader(ours)
        theirs.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc")
        assert reader.read_head("GET").status == 200
        assert reader.read_piece() == b"abc"


@pytest.mark.parametrize(
    ("path", "headers"), [("/x y", {}), ("/x\r\nA: b", {}), ("x", {}), ("/x", {"A": "b\r\nC: d"}), ("/x", {"A\n": "b"})]
)
def test_a_request_contains_no_header_of_an_attacker(path: str, headers: dict[str, str]) -> None:
    ours, theirs = socket.socketpair()
    connections = SocketConnections(lambda: ours)
    with (
        closing(theirs),
        pytest.raises(AnswerCut),
        connections.open_answer(make_request("GET", path, headers), 60),
    ):
        pass
