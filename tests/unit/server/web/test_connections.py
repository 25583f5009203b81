"""The port of the web page: clients that open many connections, or send half a request, delay no others."""

from __future__ import annotations

import asyncio
import os
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from riseml.server import bounded_connection
from riseml.server.http_config import configure_http
from riseml.server.web import connections
from riseml.server.web.connections import WebConnection, find_peer_user
from tests.support.waiting import DEADLINE

LARGE = 16 << 20
"""Bytes of an answer that fits into no buffer of the kernel."""

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
UPGRADE = (
    HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


class Door:
    """A listener whose application answers when the test says so."""

    def __init__(self) -> None:
        self.go, self.called = asyncio.Event(), asyncio.Event()
        self.address: tuple[str, int] = ("", 0)
        self.writers: list[StreamWriter] = []
        self.state = ServerState()
        self.accepted = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.called.set()
        await self.go.wait()
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        if scope["path"] == "/page":
            bounded_connection.mark_proven(scope)
        if scope["path"] == "/large":
            await PlainTextResponse("x" * LARGE + "end")(scope, receive, send)
            return
        await PlainTextResponse("yes")(scope, receive, send)

    async def connect(self, data: bytes) -> tuple[StreamReader, StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.address)
        self.writers.append(writer)
        writer.write(data)
        return reader, writer


@asynccontextmanager
async def open_door() -> AsyncIterator[Door]:
    door = Door()
    state = door.state
    config = configure_http(door, WebConnection)
    loop = asyncio.get_running_loop()

    def make_connection() -> WebConnection:
        door.accepted += 1
        return WebConnection(config=config, server_state=state, app_state={})

    server = await loop.create_server(make_connection, "127.0.0.1", 0)
    door.address = server.sockets[0].getsockname()
    yield door
    server.close()
    for writer in door.writers:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    while state.connections:  # each ends with the client's side
        await asyncio.sleep(0)


def run(test: Callable[[Door], Awaitable[None]]) -> None:
    async def call() -> None:
        async with asyncio.timeout(DEADLINE), open_door() as door:
            await test(door)

    asyncio.run(call())


async def read_to_end(reader: StreamReader) -> bytes:
    """Return what comes before the server ends the connection."""
    found = b""
    with suppress(ConnectionResetError):
        while data := await reader.read(1 << 16):
            found += data
    return found


@pytest.mark.parametrize("data", [b"", HEAD], ids=["nothing", "half a head"])
def test_a_connection_without_a_whole_head_ends(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "HEAD_PATIENCE", 0.05)

    async def test(door: Door) -> None:
        reader, _ = await door.connect(data)
        assert await read_to_end(reader) == b""

    run(test)


def test_a_stream_is_not_ended_as_a_request_whose_body_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "BODY_PATIENCE", 0.05)
    monkeypatch.setattr(bounded_connection, "HEAD_PATIENCE", 0.1)

    async def test(door: Door) -> None:
        reader, _ = await door.connect(UPGRADE)
        await door.called.wait()
        other, _ = await door.connect(HEAD)  # begins later, and gets more time
        assert await read_to_end(other) == b""
        door.go.set()
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")

    run(test)


def test_so_does_the_second_request_of_a_connection_and_no_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(door: Door) -> None:
        reader, writer = await door.connect(HEAD + b"\r\n")
        await door.called.wait()
        monkeypatch.setattr(bounded_connection, "HEAD_PATIENCE", 0.05)
        other, _ = await door.connect(HEAD)  # begins later, so that the first one has had its time
        assert await read_to_end(other) == b""
        door.go.set()
        assert (await reader.readuntil(b"yes")).startswith(b"HTTP/1.1 200")
        writer.write(HEAD)
        assert await read_to_end(reader) == b""

    run(test)


def test_a_body_that_comes_too_slowly_ends_its_connection_and_one_that_the_server_does_not_read_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounded_connection, "BODY_PATIENCE", 0.05)
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n"

    async def test(door: Door) -> None:
        slow, _ = await door.connect(head + b"x" * 100)
        assert await read_to_end(slow) == b""
        patient, writer = await door.connect(head + b"x" * 150_000)
        while not any(cast(WebConnection, connection).flow.read_paused for connection in door.state.connections):
            await asyncio.sleep(0)
        other, _ = await door.connect(head)
        assert await read_to_end(other) == b"", "it began later, so that the first one has had its time"
        monkeypatch.setattr(bounded_connection, "BODY_PATIENCE", DEADLINE)
        door.go.set()
        writer.write(b"x" * 50_000)
        assert (await read_to_end(patient)).endswith(b"yes")

    run(test)


def test_the_longest_cursor_may_arrive_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    head = b"GET /?cursor=" + b"1" * 41_000 + b" HTTP/1.1\r\nHost: localhost\r\n"
    received, enough = [0], asyncio.Event()

    class Counting(WebConnection):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            received[0] += len(data)
            if received[0] == len(head):
                enough.set()

    monkeypatch.setitem(globals(), "WebConnection", Counting)

    async def test(door: Door) -> None:
        door.go.set()
        reader, writer = await door.connect(head)
        await enough.wait()
        writer.write(b"Connection: close\r\n\r\n")
        assert (await read_to_end(reader)).startswith(b"HTTP/1.1 200")

    run(test)


def test_a_new_connection_gets_the_place_of_the_oldest_that_is_not_of_an_open_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)

    async def test(door: Door) -> None:
        door.go.set()
        page, page_writer = await door.connect(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await page.readuntil(b"yes")).startswith(b"HTTP/1.1 200")
        first, second = [await door.connect(HEAD) for _ in range(2)]
        while len(door.state.connections) < 3:
            await asyncio.sleep(0)
        third, _ = await door.connect(HEAD + b"\r\n")
        assert await read_to_end(first[0]) == b""
        assert (await third.readuntil(b"yes")).startswith(b"HTTP/1.1 200")
        second[1].write(b"Connection: close\r\n\r\n")
        assert (await read_to_end(second[0])).endswith(b"yes")
        page_writer.write(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await page.readuntil(b"yes")).startswith(b"HTTP/1.1 200")

    run(test)


def test_when_open_pages_have_all_places_another_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)

    async def test(door: Door) -> None:
        door.go.set()
        for _ in range(2):
            page, _ = await door.connect(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await page.readuntil(b"yes")).startswith(b"HTTP/1.1 200")
        reader, _ = await door.connect(HEAD + b"\r\n")
        assert await read_to_end(reader) == b""

    run(test)


def test_other_users_have_few_places_and_lose_theirs_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(connections, "MOST_FOREIGN", 1)
    users: dict[str, int | None] = {"next": None}
    monkeypatch.setattr(connections, "find_peer_user", lambda own, peer: users["next"])

    async def test(door: Door) -> None:
        door.go.set()

        async def connect(user: int | None) -> tuple[StreamReader, StreamWriter]:
            users["next"], before = user, door.accepted
            found = await door.connect(HEAD)
            while door.accepted == before:
                await asyncio.sleep(0)
            return found

        own, _ = await connect(None)
        foreign, _ = await connect(54_321)
        refused, _ = await connect(54_321)
        assert await read_to_end(refused) == b""
        await connect(os.geteuid())
        await connect(0)
        assert await read_to_end(foreign) == b"", "although the other one is older"
        assert not own.at_eof()

    run(test)


def test_a_client_that_takes_nothing_of_an_answer_loses_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "WRITE_PATIENCE", 0.05)

    async def test(door: Door) -> None:
        door.go.set()
        request = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
        _, slow = await door.connect(request)
        cast(asyncio.Transport, slow.transport).pause_reading()
        while not door.state.connections:
            await asyncio.sleep(0)
        while door.state.connections:
            await asyncio.sleep(0.01)
        monkeypatch.setattr(bounded_connection, "WRITE_PATIENCE", DEADLINE)
        reader, _ = await door.connect(b"GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        size = 0
        while data := await reader.read(1 << 20):
            size += len(data)
        assert size > LARGE

    run(test)


def test_the_kernel_says_which_user_has_the_other_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        inner = server.accept()[0]
        with inner:
            assert find_peer_user(inner.getsockname(), inner.getpeername()) == os.geteuid()
            assert find_peer_user(client.getsockname(), client.getpeername()) == os.geteuid()
            with socket.socket(socket.AF_INET6) as mapped:  # a socket of IPv6 reaches a listener of IPv4, too
                mapped.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
                other, peer = server.accept()
                with other:
                    assert find_peer_user(other.getsockname(), peer) == os.geteuid()
            assert find_peer_user(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
            assert find_peer_user(None, "") is None
