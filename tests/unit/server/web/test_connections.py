"""The port of the web page: clients that open many connections, or send half a request, delay no others."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from riseml.server.http_config import configure_http
from riseml.server.web import connections
from riseml.server.web.connections import DoorConnection
from tests.support.waiting import DEADLINE

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


class Door:
    """A listener whose application answers when the test says so."""

    def __init__(self) -> None:
        self.go, self.called = asyncio.Event(), asyncio.Event()
        self.address: tuple[str, int] = ("", 0)
        self.writers: list[StreamWriter] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.called.set()
        await self.go.wait()
        await PlainTextResponse("yes")(scope, receive, send)

    async def connect(self, data: bytes) -> tuple[StreamReader, StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.address)
        self.writers.append(writer)
        writer.write(data)
        return reader, writer


@asynccontextmanager
async def open_door() -> AsyncIterator[Door]:
    door, state = Door(), ServerState()
    config = configure_http(door, DoorConnection)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: DoorConnection(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
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
    monkeypatch.setattr(connections, "HEAD_PATIENCE", 0.05)

    async def test(door: Door) -> None:
        reader, _ = await door.connect(data)
        assert await read_to_end(reader) == b""

    run(test)


def test_so_does_the_second_request_of_a_connection_and_no_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(door: Door) -> None:
        reader, writer = await door.connect(HEAD + b"\r\n")
        await door.called.wait()
        monkeypatch.setattr(connections, "HEAD_PATIENCE", 0.05)
        other, _ = await door.connect(HEAD)  # begins later, so that the first one has had its time
        assert await read_to_end(other) == b""
        door.go.set()
        assert (await reader.readuntil(b"yes")).startswith(b"HTTP/1.1 200")
        writer.write(HEAD)
        assert await read_to_end(reader) == b""

    run(test)


def test_the_longest_cursor_may_arrive_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    head = b"GET /?cursor=" + b"1" * 41_000 + b" HTTP/1.1\r\nHost: localhost\r\n"
    received, enough = [0], asyncio.Event()

    class Counting(DoorConnection):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            received[0] += len(data)
            if received[0] == len(head):
                enough.set()

    monkeypatch.setitem(globals(), "DoorConnection", Counting)

    async def test(door: Door) -> None:
        door.go.set()
        reader, writer = await door.connect(head)
        await enough.wait()
        writer.write(b"Connection: close\r\n\r\n")
        assert (await read_to_end(reader)).startswith(b"HTTP/1.1 200")

    run(test)


def test_connections_have_a_greatest_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)

    async def test(door: Door) -> None:
        door.go.set()
        kept = [await door.connect(HEAD) for _ in range(2)]
        reader, _ = await door.connect(HEAD + b"\r\n")
        assert await read_to_end(reader) == b""
        for reader, writer in kept:
            writer.write(b"Connection: close\r\n\r\n")
            assert (await read_to_end(reader)).endswith(b"yes")
        reader, _ = await door.connect(HEAD + b"\r\n")
        assert (await reader.readuntil(b"yes")).startswith(b"HTTP/1.1 200")

    run(test)
