"""The copy between a client and a stream into a job: bounded on both sides, and over when one of the two is gone."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable

from riseml.base.stream_messages import (
    WINDOW,
    Channel,
    ChannelData,
    ChannelEnd,
    CommandExit,
    CommandRequest,
    StreamFailure,
    StreamMessage,
    StreamReady,
    WindowSize,
    WindowUpdate,
)
from riseml.executors.job_streams import JobStream, NoControl, RawCodec
from riseml.server.access.stream_relay import relay_stream
from tests.support.memory_executor import MemoryCommand
from tests.support.waiting import DEADLINE


class Desk:
    """The client's side, which a test plays."""

    def __init__(self) -> None:
        self.to_server: asyncio.Queue[StreamMessage | None] = asyncio.Queue()
        self.from_server: asyncio.Queue[StreamMessage] = asyncio.Queue()

    async def receive(self) -> StreamMessage | None:
        return await self.to_server.get()

    async def send(self, message: StreamMessage) -> None:
        self.from_server.put_nowait(message)

    async def read(self) -> StreamMessage:
        return await asyncio.wait_for(self.from_server.get(), DEADLINE)


async def read_far(command: MemoryCommand, size: int) -> bytes:
    """Return so many bytes of what the command gets."""
    loop = asyncio.get_running_loop()
    found = b""
    while len(found) < size and (data := await asyncio.wait_for(loop.sock_recv(command.far, 65536), DEADLINE)):
        found += data
    return found


def play(test: Callable[[Desk, MemoryCommand], Awaitable[None]]) -> MemoryCommand:
    """Relay the stream of a command in memory while `test` plays both ends; return the command."""

    async def run() -> MemoryCommand:
        desk, command = Desk(), MemoryCommand(CommandRequest(("cat",)))
        command.far.settimeout(0.0)
        relay = asyncio.create_task(relay_stream(JobStream(command.near, RawCodec(), command), desk))
        assert await desk.read() == StreamReady()
        await test(desk, command)
        await asyncio.wait_for(relay, DEADLINE)
        command.far.close()
        return command

    command = asyncio.run(run())
    assert command.ended.wait(DEADLINE)
    return command


def test_input_output_size_and_exit_code_go_through() -> None:
    async def act(desk: Desk, command: MemoryCommand) -> None:
        command.exit_code = 7
        desk.to_server.put_nowait(WindowSize(30, 90))
        desk.to_server.put_nowait(ChannelData(Channel.INPUT, b"hello"))
        desk.to_server.put_nowait(ChannelEnd(Channel.INPUT))
        assert await desk.read() == WindowUpdate(5)
        assert await read_far(command, 6) == b"hello"  # and its end
        command.far.send(b"world")
        command.far.close()
        assert await desk.read() == ChannelData(Channel.OUTPUT, b"world")
        assert await desk.read() == CommandExit(7)

    assert play(act).sizes == [WindowSize(30, 90)]


def test_no_more_is_sent_than_the_client_grants() -> None:
    async def act(desk: Desk, command: MemoryCommand) -> None:
        loop = asyncio.get_running_loop()
        sending = asyncio.create_task(loop.sock_sendall(command.far, bytes(4 * WINDOW)))
        taken = 0
        while taken < WINDOW:
            message = await desk.read()
            assert isinstance(message, ChannelData)
            taken += len(message.content)
        assert taken == WINDOW
        desk.to_server.put_nowait(WindowUpdate(WINDOW))
        while taken < 2 * WINDOW:
            message = await desk.read()
            assert isinstance(message, ChannelData)
            taken += len(message.content)
        assert desk.from_server.empty()
        desk.to_server.put_nowait(None)
        sending.cancel()

    play(act)


def test_a_client_that_goes_away_is_seen_while_the_command_takes_no_input() -> None:
    async def act(desk: Desk, command: MemoryCommand) -> None:
        for _ in range(4):
            desk.to_server.put_nowait(ChannelData(Channel.INPUT, bytes(WINDOW // 4)))
        desk.to_server.put_nowait(None)

    play(act)


def test_a_client_that_sends_more_than_was_granted_is_dropped() -> None:
    async def act(desk: Desk, command: MemoryCommand) -> None:
        command.near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        for _ in range(9):
            desk.to_server.put_nowait(ChannelData(Channel.INPUT, bytes(WINDOW // 4)))

    play(act)


def test_a_command_that_leaves_its_input_unread_has_its_exit_code() -> None:
    async def act(desk: Desk, command: MemoryCommand) -> None:
        command.exit_code = 44
        desk.to_server.put_nowait(ChannelData(Channel.INPUT, b"unread"))
        assert await desk.read() == WindowUpdate(6)
        command.far.send(b"last")
        command.far.close()  # resets the connection, since input waits in it
        for _ in range(2):
            desk.to_server.put_nowait(ChannelData(Channel.INPUT, b"too late"))
        assert await desk.read() == ChannelData(Channel.OUTPUT, b"last")
        assert await desk.read() == CommandExit(44)

    play(act)


def test_a_port_that_the_job_resets_differs_from_a_lost_host() -> None:
    async def run() -> None:
        desk = Desk()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            near = socket.create_connection(listener.getsockname())
            far, _ = listener.accept()
        relay = asyncio.create_task(relay_stream(JobStream(near, RawCodec(), NoControl()), desk))
        assert await desk.read() == StreamReady()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        far.close()
        failure = await desk.read()
        assert isinstance(failure, StreamFailure)
        assert (failure.kind, failure.message[:30]) == ("PortReset", "the job broke the connection: ")
        desk.to_server.put_nowait(None)
        await asyncio.wait_for(relay, DEADLINE)

    asyncio.run(run())


def test_a_port_is_open_until_both_directions_have_ended() -> None:
    async def run() -> None:
        desk = Desk()
        far, near = socket.socketpair()
        relay = asyncio.create_task(relay_stream(JobStream(near, RawCodec(), NoControl(), b"first"), desk))
        assert await desk.read() == StreamReady()
        assert await desk.read() == ChannelData(Channel.OUTPUT, b"first")
        far.shutdown(socket.SHUT_WR)
        assert await desk.read() == ChannelEnd(Channel.OUTPUT)
        desk.to_server.put_nowait(ChannelData(Channel.INPUT, b"late"))
        assert await desk.read() == WindowUpdate(4)
        assert far.recv(10) == b"late"
        desk.to_server.put_nowait(ChannelEnd(Channel.INPUT))
        await asyncio.wait_for(relay, DEADLINE)
        assert far.recv(10) == b""
        far.close()

    asyncio.run(run())
