"""The log stream of an engine: cut anywhere, and from a real connection complete, or an error when that breaks."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from riseml.executors.docker.log_stream import ChunkReader, FrameReader, format_since, read_body
from riseml.model import Frame, FramePosition, LogCursor
from tests.support.cursors import frames
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


def encode(frame: Frame) -> bytes:
    payload = frame.at.encode() + b" " + frame.data
    return bytes([frame.stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


@given(frames, st.lists(st.integers(1, 50), max_size=40))
def test_frames_are_whole_wherever_the_stream_is_cut(written: list[Frame], cuts: list[int]) -> None:
    data = b"".join(map(encode, written))
    reader = FrameReader()
    found: list[Frame] = []
    for size in [*cuts, len(data)]:
        found += reader.feed(data[:size])
        data = data[size:]
    assert found == written


def test_since_is_a_second_before_the_last_frame_and_has_nine_digits() -> None:
    after = FramePosition("2026-08-31T07:23:47.5Z", 1)
    assert format_since(LogCursor({1: after})) == "1788161026.500000000"
    assert format_since(LogCursor({1: FramePosition("2026-08-31T07:23:46Z", 1), 2: after})) == "1788161026.500000000"
    assert format_since(LogCursor({3: after})) is None, "the engine has no lines of riseml"
    assert format_since(LogCursor()) is None


def test_a_frame_of_the_engine_itself_has_no_timestamp() -> None:
    payload = b"Error grabbing logs"
    data = bytes([3, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload
    assert list(FrameReader().feed(data)) == [Frame("", 3, payload)]


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=10), st.lists(st.integers(1, 400), max_size=40))
def test_chunks_are_whole_wherever_the_body_is_cut(written: list[bytes], cuts: list[int]) -> None:
    data = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in written) + b"0\r\n\r\n"
    reader = ChunkReader()
    found = b""
    for size in [*cuts, len(data)]:
        assert not reader.complete or not data
        found += reader.feed(data[:size])
        data = data[size:]
    assert found == b"".join(written)
    assert reader.complete


def test_a_body_that_was_cut_is_not_complete() -> None:
    reader = ChunkReader()
    assert reader.feed(b"3\r\nabc\r\n0\r\n") == b"abc"
    assert not reader.complete
    with pytest.raises(ValueError, match="no size"):
        ChunkReader().feed(b"this is no chunk at all\r\n")
