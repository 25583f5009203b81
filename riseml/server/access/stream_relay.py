"""Copy between a client and the stream of a job, in both directions, until one side ends it.

The server reads both sides all the time, and holds at most one window of each direction (`base.stream_messages`). So
it notices at once that a client is gone, also while data waits to be written.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from typing import Protocol

from starlette.concurrency import run_in_threadpool

from riseml.base.errors import EngineError, PortReset, RisemlError, Unreachable
from riseml.base.stream_messages import (
    LONGEST_PIECE,
    Channel,
    ChannelData,
    ChannelEnd,
    CommandExit,
    FlowWindow,
    StreamFailure,
    StreamMessage,
    StreamReady,
    WindowSize,
    WindowUpdate,
)
from riseml.executors.job_streams import JobStream

log = logging.getLogger(__name__)


class StreamClient(Protocol):
    """The client's side."""

    async def receive(self) -> StreamMessage | None:
        """Return the next message; None when the client is gone.

        Raises:
            ValueError: the client sent something that is not a message.
        """

    async def send(self, message: StreamMessage) -> None:
        """Send a message; wait while the client does not read. Does nothing when the client is gone."""


def make_failure(error: RisemlError) -> StreamFailure:
    """Return an error as the last message of a stream."""
    return StreamFailure(type(error).__name__, error.message, error.hint, error.exit_code)


async def relay_stream(stream: JobStream, client: StreamClient) -> None:
    """Copy until the stream has ended or the client is gone; then end the stream."""
    stream.socket.settimeout(0.0)  # asyncio accepts no blocking sockets
    try:
        await client.send(StreamReady())
        await _StreamRelay(stream, client).run()
    finally:
        stream.socket.close()
        end_in_thread(stream)


def end_in_thread(stream: JobStream) -> None:
    """End the processes of the stream in a thread, because that may take seconds and no client waits for it."""
    threading.Thread(target=stream.control.end, name="end-stream", daemon=True).start()


class _StreamRelay:
    """One stream with its client.

    It reads the socket itself, because asyncio's streams drop received data as soon as a write fails. A command that
    ends without reading its input makes writes fail while its last output and its exit code are still to be read.
    """

    def __init__(self, stream: JobStream, client: StreamClient) -> None:
        self._stream = stream
        self._client = client
        self._to_client = FlowWindow()
        self._granted = asyncio.Condition()
        self._from_client = FlowWindow()
        self._inbox: asyncio.Queue[StreamMessage] = asyncio.Queue()  # bounded by the window
        self._is_port = False  # known when the output has ended: a port has no exit code

    async def run(self) -> None:
        """Copy until one side ends it."""
        output = asyncio.create_task(self._copy_output())
        input_ = asyncio.create_task(self._write_input())
        client = asyncio.create_task(self._receive_from_client())
        pending: set[asyncio.Task[None]] = {output, input_, client}
        try:
            while not client.done() and not (output.done() and (not self._is_port or input_.done())):
                _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (output, input_, client):
                task.cancel()
            results = await asyncio.gather(output, input_, client, return_exceptions=True)
        for result in results:
            if isinstance(result, ValueError):
                log.warning("a stream was ended: %s", result)
            elif isinstance(result, Exception):
                log.error("a stream failed", exc_info=result)

    async def _copy_output(self) -> None:
        """Send the output of the job's side, then its exit code or the end of the port's output."""
        try:
            data = self._stream.received
            broken = None
            if not data:
                data, broken = await self._read_output()
            while data:
                for message in self._stream.codec.decode(data):
                    await self._send_to_client(message)
                    if isinstance(message, CommandExit):
                        return
                data, broken = await self._read_output()
            code = await run_in_threadpool(self._stream.control.find_exit_code)
            self._is_port = code is None
            if code is not None:  # a command that leaves input unread resets the connection when it ends
                await self._client.send(CommandExit(code))
            elif broken is not None:
                hint = "`riseml status` shows whether it runs on"
                await self._client.send(make_failure(PortReset(f"the job broke the connection: {broken}", hint)))
            else:
                await self._client.send(ChannelEnd(Channel.OUTPUT))
        except RisemlError as error:
            await self._client.send(make_failure(error))

    async def _read_output(self) -> tuple[bytes, OSError | None]:
        """Return the next bytes of the job's side, empty at its end, and the error when the connection broke."""
        try:
            return await asyncio.get_running_loop().sock_recv(self._stream.socket, LONGEST_PIECE), None
        except OSError as error:
            return b"", error

    async def _send_to_client(self, message: StreamMessage) -> None:
        """Send a message when the client has room for it."""
        if not isinstance(message, ChannelData):
            await self._client.send(message)
            return
        remainder = message.content
        while remainder:
            async with self._granted:
                while not self._to_client.left:
                    await self._granted.wait()
                part, remainder = self._to_client.take_part(remainder)
            await self._client.send(ChannelData(message.channel, part))

    async def _receive_from_client(self) -> None:
        """Receive messages of the client until it is gone."""
        while (message := await self._client.receive()) is not None:
            match message:
                case WindowUpdate(amount):
                    async with self._granted:
                        self._to_client.grant(amount)
                        self._granted.notify_all()
                case ChannelData(Channel.INPUT, content):
                    self._from_client.take(len(content))
                    self._inbox.put_nowait(message)
                case ChannelEnd(Channel.INPUT) | WindowSize():
                    self._inbox.put_nowait(message)
                case _:
                    raise ValueError(f"the client sent {type(message).__name__}")

    async def _write_input(self) -> None:
        """Write the client's input to the job, and grant as many bytes again; return at the end of the input."""
        while True:
            message = await self._inbox.get()
            try:
                ends = await self._write_message(message)
            except OSError as error:  # the job's side is gone: the end of its output will show why
                log.debug("input was not taken: %s", error)
                return
            if isinstance(message, ChannelData):
                self._from_client.grant(len(message.content))
                await self._client.send(WindowUpdate(len(message.content)))
            if ends:
                return

    async def _write_message(self, message: StreamMessage) -> bool:
        """Write one message; True when nothing can be written after it."""
        data = self._stream.codec.encode(message)
        if data is None:
            self._stream.socket.shutdown(socket.SHUT_WR)
            return True
        await asyncio.get_running_loop().sock_sendall(self._stream.socket, data)
        if isinstance(message, WindowSize):
            try:
                await run_in_threadpool(self._stream.control.resize, message)
            except (EngineError, Unreachable) as error:
                log.info("the size of a terminal was not changed: %s", error.message)
        return False
