"""The body of an engine's log from a real connection: complete, or an error when the connection breaks."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests
import urllib3

from riseml.executors.docker.log_stream import read_body
from tests.support.waiting import DEADLINE

FRAMES = [b"frame %d\n" % number for number in range(2000)]
CHUNKS = b"".join(b"%x\r\n%b\r\n" % (len(frame), frame) for frame in FRAMES)


@contextmanager
def answer(body: bytes, head: bytes = b"Transfer-Encoding: chunked\r\n") -> Iterator[urllib3.HTTPResponse]:
    """Give the response of a server that sends this body and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + body)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with requests.Session() as session:
            session.trust_env = False
            with session.get(f"http://127.0.0.1:{server.getsockname()[1]}", stream=True, timeout=DEADLINE) as found:
                yield found.raw
        thread.join()


def test_a_complete_body_arrives_in_large_pieces() -> None:
    with answer(CHUNKS + b"0\r\n\r\n") as raw:
        pieces = list(read_body(raw))
    assert b"".join(pieces) == b"".join(FRAMES)
    assert len(pieces) < len(FRAMES)


@pytest.mark.parametrize("lost", [1, 3, 5, 8])
def test_a_body_that_is_cut_is_an_error_after_its_content(lost: int) -> None:
    found: list[bytes] = []
    with answer((CHUNKS + b"0\r\n\r\n")[:-lost]) as raw:
        reading = read_body(raw)
        with pytest.raises(urllib3.exceptions.ProtocolError):
            while True:
                found.append(next(reading))
    assert b"".join(found) == b"".join(FRAMES[: -1 if lost > 5 else None])


def test_a_body_without_chunks_is_read_too() -> None:
    body = b"".join(FRAMES)
    with answer(body, b"Content-Length: %d\r\n" % len(body)) as raw:
        assert b"".join(read_body(raw)) == body


def test_a_body_that_is_something_else_is_an_error() -> None:
    with answer(b"this is not what a chunk looks like\r\n") as raw, pytest.raises(urllib3.exceptions.ProtocolError):
        list(read_body(raw))
