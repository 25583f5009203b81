"""Listen on 127.0.0.1 and pass each connection on to a port of a job: `forward`, `tensorboard` and `notebook`."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from riseml.base.errors import Conflict, NotFound, PortReset, RisemlError, Unreachable
from riseml.base.records import dataclass
from riseml.base.stream_messages import LONGEST_PIECE, WINDOW, Channel, ChannelData, ChannelEnd
from riseml.client.exchange import Address
from riseml.client.stream_client import StreamConnection, open_stream, port_path, presence_path

HOST = "127.0.0.1"
_PATIENCE = 60.0  # seconds to retry opening a connection while the server or the host does not answer
_PAUSE = 0.5  # seconds between two tries
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class PortPair:
    """A port of this machine and the port of the job that it leads to."""

    local: int  # 0: any free one
    remote: int


@dataclass(frozen=True, slots=True)
class ForwardRequest:
    """What to forward."""

    job: str  # its ID
    pairs: Sequence[PortPair]
    attended: str | None = None  # an experiment that runs as long as it has a client: count as its client until the end


def find_answering_jobs(address: Address, jobs: Sequence[str], port: int) -> list[str]:
    """Return those of the jobs in which something listens on a port.

    Raises:
        RisemlError: a single job cannot be reached, with the reason.
    """
    return asyncio.run(_find_answering_jobs(address, jobs, port))


def choose_local_port(preferred: int) -> int:
    """Return a port of this machine if it is free now, else 0, which stands for any free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, preferred))
        except OSError:
            return 0
    return preferred


def forward_ports(
    address: Address,
    request: ForwardRequest,
    on_ready: Callable[[Sequence[PortPair]], None],
    on_failure: Callable[[str], None],
) -> None:
    """Forward until the user ends it.

    Args:
        address: where the server is.
        request: the job and its ports.
        on_ready: called once with the ports that are in use.
        on_failure: called with the reason of a failed connection, once for each reason; other connections go on.

    Raises:
        KeyboardInterrupt: the user ended it.
        Conflict: a port of this machine is in use, or the job has ended.
        Unreachable: the server or the host has not answered for a minute when a connection was to be opened.
    """
    asyncio.run(Forwarder(address, request, on_failure).run(on_ready))
    raise KeyboardInterrupt


async def _find_answering_jobs(address: Address, jobs: Sequence[str], port: int) -> list[str]:
    answering: list[str] = []
    for job in jobs:
        try:
            async with open_stream(address, port_path(job, port)):
                answering.append(job)
        except (NotFound, Conflict):  # nothing listens there, or the job has just ended
            if len(jobs) == 1:
                raise
    return answering


class Forwarder:
    """All connections of one command, or of one `with` statement of a program.

    Args:
        address: where the server is.
        request: the job and its ports.
        on_failure: called with the reason of a failed connection, once for each reason; other connections go on.
    """

    def __init__(self, address: Address, request: ForwardRequest, on_failure: Callable[[str], None]) -> None:
        self._address = address
        self._request = request
        self._on_failure = on_failure
        self._failures: set[str] = set()  # the failures that were reported to the user
        self._is_over = asyncio.Event()
        self._error: RisemlError | None = None  # why the command ends; None: the user ends it
        self._connections: set[asyncio.Task[None]] = set()

    async def run(self, on_ready: Callable[[Sequence[PortPair]], None]) -> None:
        """Forward until a signal ends the command."""
        loop = asyncio.get_running_loop()
        for number in _ENDINGS:
            loop.add_signal_handler(number, self._is_over.set)
        await self.forward(on_ready)

    async def forward(self, on_ready: Callable[[Sequence[PortPair]], None]) -> None:
        """Forward until it is over, or this task is cancelled."""
        attended = self._request.attended
        presence = None if attended is None else asyncio.create_task(self._attend_companion(attended))
        async with AsyncExitStack() as stack:
            try:
                used = [await self._listen_on_port(stack, pair) for pair in self._request.pairs]
                on_ready(used)
                await self._is_over.wait()
            finally:
                tasks = [*self._connections, *([] if presence is None else [presence])]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        if self._error is not None:
            raise self._error

    async def _attend_companion(self, experiment: str) -> None:
        """Count as a client of an experiment, until it ends or the server does."""
        try:
            async with open_stream(self._address, presence_path(experiment)) as stream:
                while True:
                    await stream.receive()
        except RisemlError as error:
            self._error = self._error or error
            self._is_over.set()

    async def _listen_on_port(self, stack: AsyncExitStack, pair: PortPair) -> PortPair:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None, "asyncio has made it"
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
            await self._serve(pair.remote, reader, writer)

        try:
            server = await asyncio.start_server(serve, HOST, pair.local, family=socket.AF_INET, limit=WINDOW)
        except OSError as error:
            raise Conflict(
                f"port {pair.local} of this machine cannot be used: {os.strerror(error.errno or 0)}",
                f"choose another one: `riseml forward {self._request.job} 0:{pair.remote}` takes any free port",
            ) from None
        stack.callback(server.close)
        return PortPair(server.sockets[0].getsockname()[1], pair.remote)

    async def _serve(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on, to its end."""
        try:
            async with self._open_stream(port) as stream:
                sending = asyncio.create_task(_send_input(reader, stream))
                try:
                    await _receive_output(stream, writer)
                    await sending
                finally:
                    sending.cancel()
            writer.close()
        except OSError:  # the program at this end is gone
            writer.transport.abort()
        except PortReset:  # the program reads it
            writer.transport.abort()
        except RisemlError as error:
            writer.transport.abort()
            self._note_failure(port, error)
        except asyncio.CancelledError:
            writer.transport.abort()
            raise

    @asynccontextmanager
    async def _open_stream(self, port: int) -> AsyncIterator[StreamConnection]:
        """Open a stream to a port. Try again while the server does not answer: no data is lost before the stream is
        open.

        Raises:
            RisemlError: it cannot be opened. `Conflict` and `Unreachable` are the end of the whole command.
        """
        give_up = asyncio.get_running_loop().time() + _PATIENCE
        async with AsyncExitStack() as stack:
            while True:
                try:
                    stream = await stack.enter_async_context(
                        open_stream(self._address, port_path(self._request.job, port))
                    )
                    break
                except (Conflict, Unreachable) as error:
                    if isinstance(error, Conflict) or asyncio.get_running_loop().time() > give_up:
                        self._error = self._error or error
                        self._is_over.set()
                        raise
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._is_over.wait(), _PAUSE)
            yield stream

    def _note_failure(self, port: int, error: RisemlError) -> None:
        """Report a reason for failed connections once, unless the command ends with this error."""
        if error is not self._error and error.message not in self._failures:
            self._failures.add(error.message)
            self._on_failure(f"a connection to port {port} of {self._request.job} failed: {error.message}")


async def _send_input(reader: asyncio.StreamReader, stream: StreamConnection) -> None:
    """Send what comes from this machine, to its end."""
    with suppress(ConnectionError):
        while data := await reader.read(LONGEST_PIECE):
            await stream.send_input(data)
    await stream.end_input()


async def _receive_output(stream: StreamConnection, writer: asyncio.StreamWriter) -> None:
    """Write what the job sends, to its end."""
    while True:
        match await stream.receive():
            case ChannelData(Channel.OUTPUT, content):
                writer.write(content)
                await writer.drain()
                await stream.grant(len(content))
            case ChannelEnd(Channel.OUTPUT):
                writer.write_eof()
                return
            case _:
                continue
