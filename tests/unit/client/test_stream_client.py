"""A client's stream into a job: its routes, what the window lets pass, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve

from riseml.base.errors import NotFound, Unreachable
from riseml.base.stream_messages import (
    WINDOW,
    Channel,
    ChannelData,
    CommandExit,
    CommandRequest,
    StreamFailure,
    StreamMessage,
    StreamReady,
    WindowUpdate,
    decode_message,
    encode_message,
)
from riseml.client.exchange import Address
from riseml.client.stream_client import command_path, open_stream, port_path, presence_path
from tests.support.waiting import DEADLINE

ORDER = CommandRequest(("id",))
Answer = Callable[[ServerConnection], Awaitable[None]]


async def read(door: ServerConnection) -> StreamMessage:
    """Return the next message of the client."""
    data = await door.recv()
    assert isinstance(data, bytes)
    return decode_message(data)


async def write(door: ServerConnection, *messages: StreamMessage) -> None:
    for message in messages:
        await door.send(encode_message(message))


@asynccontextmanager
async def serve_stream(answer: Answer) -> AsyncIterator[Address]:
    """Give the address of a server that answers each stream in this way."""
    async with serve(answer, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield Address(None, f"http://127.0.0.1:{port}", "secret")


def run(work: Awaitable[None]) -> None:
    asyncio.run(asyncio.wait_for(work, DEADLINE))


@pytest.mark.parametrize(
    ("path", "route"),
    [
        (command_path("ann.4/worker?"), "/experiments/ann.4%2Fworker%3F/command"),
        (port_path("4.master", 6006), "/experiments/4.master/ports/6006"),
        (presence_path("4"), "/experiments/4/presence"),
    ],
)
def test_an_identity_is_one_part_of_its_route(path: str, route: str) -> None:
    assert path == route


def test_a_command_gets_its_order_and_the_key_of_the_user() -> None:
    seen: list[object] = []

    async def answer(door: ServerConnection) -> None:
        assert door.request is not None
        seen.extend([door.request.path, door.request.headers["Authorization"], await read(door)])
        await write(door, StreamReady(), ChannelData(Channel.OUTPUT, b"uid=1"), CommandExit(3))

    async def talk() -> None:
        async with serve_stream(answer) as address, open_stream(address, command_path("4"), ORDER) as stream:
            assert await stream.receive() == ChannelData(Channel.OUTPUT, b"uid=1")
            assert await stream.receive() == CommandExit(3)

    run(talk())
    assert seen == ["/v1/experiments/4/command", "Bearer secret", ORDER]


def test_a_refusal_is_the_error_of_the_server() -> None:
    async def answer(door: ServerConnection) -> None:
        await write(door, StreamFailure("NotFound", "there is no job 4", None, 1))

    async def talk() -> None:
        async with serve_stream(answer) as address:
            with pytest.raises(NotFound, match="there is no job 4"):
                async with open_stream(address, port_path("4", 80)):
                    pytest.fail("the stream is open")

    run(talk())


def test_a_stream_that_breaks_gives_what_came_before_and_then_an_error() -> None:
    async def answer(door: ServerConnection) -> None:
        await write(door, StreamReady(), ChannelData(Channel.OUTPUT, b"last"))
        door.transport.abort()

    async def talk() -> None:
        async with serve_stream(answer) as address, open_stream(address, port_path("4", 80)) as stream:
            assert await stream.receive() == ChannelData(Channel.OUTPUT, b"last")
            with pytest.raises(Unreachable, match="broke the stream; jobs run on"):
                await stream.receive()

    run(talk())


def test_input_beyond_the_window_waits_until_the_server_takes_more() -> None:
    content = bytes(WINDOW + 1000)

    async def talk() -> None:
        is_full, granted = asyncio.Event(), asyncio.Event()
        sizes: list[int] = []

        async def answer(door: ServerConnection) -> None:
            await write(door, StreamReady())
            while sum(sizes) < len(content):
                message = await read(door)
                assert isinstance(message, ChannelData)
                sizes.append(len(message.content))
                if sum(sizes) == WINDOW:
                    is_full.set()
                    await granted.wait()
                    await write(door, WindowUpdate(1000))

        async with serve_stream(answer) as address, open_stream(address, port_path("4", 80)) as stream:
            sending = asyncio.create_task(stream.send_input(content))
            await is_full.wait()
            assert not sending.done()
            granted.set()
            await sending

    run(talk())


def test_a_server_that_is_not_there_or_knows_no_streams_is_unreachable(tmp_path: Path) -> None:
    async def talk() -> None:
        async with serve_stream(lambda door: door.close()) as address:
            gone = address
        with pytest.raises(Unreachable, match="does not answer"):
            async with open_stream(gone, port_path("4", 80)):
                pytest.fail("the stream is open")
        with pytest.raises(Unreachable):
            async with open_stream(Address(tmp_path / "server.sock"), port_path("4", 80)):
                pytest.fail("the stream is open")

    run(talk())
