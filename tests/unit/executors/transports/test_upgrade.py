"""A request that turns its connection into a stream: what comes behind the answer is not lost."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from riseml.executors.transports.upgrade import UpgradeRefused, upgrade_connection
from tests.support.waiting import DEADLINE

SWITCHED = b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\n"
SWITCHED += b"Upgrade: tcp\r\n\r\n"


@contextmanager
def answer_with(*pieces: bytes) -> Iterator[tuple[socket.socket, list[bytes]]]:
    """Give a connection to an engine that answers with these pieces, and what the engine has read."""
    ours, theirs = socket.socketpair()
    heard: list[bytes] = []

    def answer() -> None:
        with theirs:
            heard.append(theirs.recv(65536))
            while b'{"Tty": false}' not in b"".join(heard):
                heard.append(theirs.recv(65536))
            for piece in pieces:
                theirs.sendall(piece)
            theirs.shutdown(socket.SHUT_WR)
            while theirs.recv(65536):  # until the client has left: it may still send an empty end
                continue

    engine = threading.Thread(target=answer, daemon=True)
    engine.start()
    with ours:
        ours.settimeout(DEADLINE)
        yield ours, heard
    engine.join(DEADLINE)


@pytest.mark.parametrize(
    "pieces", [(SWITCHED + b"first",), (SWITCHED, b"first"), (SWITCHED[:20], SWITCHED[20:] + b"fi", b"rst")]
)
def test_the_bytes_behind_the_answer_belong_to_the_stream(pieces: tuple[bytes, ...]) -> None:
    with answer_with(*pieces) as (stream, heard):
        content = upgrade_connection(stream, "/v1.41/exec/ab12/start", {"Tty": False})
        while len(content) < 5:
            content += stream.recv(100)
    request = b"".join(heard)
    assert content == b"first"
    assert request.startswith(b"POST /v1.41/exec/ab12/start HTTP/1.1\r\n")
    assert b"upgrade: tcp" in request.lower()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"message": "No such container: ab12"}', "No such container: ab12"),
        (b"plain words\n", "plain words"),
        (b"[1]", "[1]"),
        (b"", ""),
    ],
)
def test_a_refusal_has_its_status_and_the_words_of_the_engine(body: bytes, words: str) -> None:
    head = f"HTTP/1.1 404 Not Found\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with answer_with(head + body) as (stream, _), pytest.raises(UpgradeRefused) as raised:
        upgrade_connection(stream, "/exec", {"Tty": False})
    assert (raised.value.status, str(raised.value)) == (404, words)


@pytest.mark.parametrize("piece", [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", SWITCHED[:30]], ids=["another program", "cut off"])
def test_an_answer_that_is_not_http_is_a_broken_connection(piece: bytes) -> None:
    with answer_with(piece) as (stream, _), pytest.raises(OSError, match="not HTTP"):
        upgrade_connection(stream, "/exec", {"Tty": False})
