"""One HTTP request to a port of a job, whose program answers what it likes."""

from __future__ import annotations

import asyncio
import socket
import threading

import h11
import pytest

from riseml.executors.job_streams import JobStream, NoControl, RawCodec
from riseml.server.access.job_http import BadAnswer, JobExchange

REQUEST = h11.Request(method="GET", target="/x", headers=[("Host", "job")])


def ask(answer: bytes) -> tuple[int, bytes, bytes]:
    """Return the status and the body of an answer, and the request that the program got."""
    near, far = socket.socketpair()
    requests: list[bytes] = []

    def play_program() -> None:
        with far:
            requests.append(far.recv(65536))
            far.sendall(answer)

    async def run() -> tuple[int, bytes]:
        exchange = JobExchange(JobStream(near, RawCodec(), NoControl()))
        try:
            head = await exchange.ask(REQUEST, b"")
            return head.status_code, b"".join([piece async for piece in exchange.read_body()])
        finally:
            exchange.close()

    program = threading.Thread(target=play_program)
    program.start()
    try:
        status, body = asyncio.run(run())
    finally:
        program.join()
    return status, body, requests[0]


def test_a_request_gets_its_answer_in_pieces() -> None:
    status, body, request = ask(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    assert (status, body) == (200, b"hello")
    assert request.startswith(b"GET /x HTTP/1.1\r\n")


def test_an_answer_may_come_after_an_interim_one_and_in_chunks() -> None:
    answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    assert ask(answer)[:2] == (404, b"ab")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"hello\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 10,
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
    ],
    ids=["nothing", "no HTTP", "another protocol", "a head without end", "interim answers alone", "a body cut off"],
)
def test_what_is_no_answer_is_one_error(answer: bytes) -> None:
    with pytest.raises(BadAnswer, match="its answer is not HTTP"):
        ask(answer)
