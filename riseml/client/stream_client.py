"""The client's side of a two-way stream into a job: a WebSocket of the server's HTTP API (see `stream_messages`).

asyncio and the WebSocket library are imported here alone, so that no other command pays for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, WebSocketException

from riseml.base.errors import Unreachable
from riseml.base.stream_messages import (
    LONGEST_MESSAGE,
    Channel,
    ChannelData,
    ChannelEnd,
    CommandRequest,
    FlowWindow,
    StreamFailure,
    StreamMessage,
    StreamReady,
    WindowSize,
    WindowUpdate,
    decode_message,
    encode_message,
)
from riseml.client.exchange import Address, Exchange
from riseml.client.refusals import make_error
from riseml.client.server_trust import explain_distrust, make_tls_context

_ANSWER = 60.0  # deadline in seconds for opening the stream: an engine may be busy
_CLOSE = 1.0  # seconds for an orderly end of the connection


def command_path(identity: str) -> str:
    """Return the route that runs a command in a job."""
    return f"/experiments/{quote(identity, safe='')}/command"


def port_path(identity: str, port: int) -> str:
    """Return the route that connects to a port of a job."""
    return f"/experiments/{quote(identity, safe='')}/ports/{port}"


def presence_path(identity: str) -> str:
    """Return the route that counts a client of an experiment."""
    return f"/experiments/{quote(identity, safe='')}/presence"


@asynccontextmanager
async def open_stream(
    address: Address, path: str, request: CommandRequest | None = None
) -> AsyncIterator[StreamConnection]:
    """Give an open stream. At the end the stream is closed, and the server ends what it started for the stream.

    Args:
        address: where the server is.
        path: the route.
        request: the command to run; None for a port.

    Raises:
        RisemlError: there is no such stream, or the server does not answer.
    """
    async with _connect(address, path) as socket:
        connection = StreamConnection(socket, address)
        try:
            await connection.begin(request)
            yield connection
        finally:
            connection.stop()


class _StraightConnect(connect):
    """Opens a connection where the address says, and nowhere else: another server would get the key."""

    def process_redirect(self, exc: Exception) -> Exception:
        """Return the error instead of the address to which a redirect leads."""
        return exc


@asynccontextmanager
async def _connect(address: Address, path: str) -> AsyncIterator[ClientConnection]:
    url = address.url.replace("http", "ws", 1) + f"/v1{path}"
    options: dict[str, Any] = {
        "compression": None,
        "max_size": LONGEST_MESSAGE,
        "ping_interval": None,  # no ping: a command that its user has stopped (Ctrl-Z) does not answer, and is not gone
        "open_timeout": _ANSWER,
        "close_timeout": _CLOSE,
        "additional_headers": {"Authorization": f"Bearer {address.key}"} if address.key else {},
    }
    if address.socket is not None:
        sock = Exchange(address).open_socket(address.socket)
        sock.settimeout(None)
        options |= {"sock": sock, "proxy": None}
    elif url.startswith("ws:"):
        options["proxy"] = None  # no proxy: it would get data that is meant for this machine alone
    if url.startswith("wss:"):
        options["ssl"] = make_tls_context(address.authority)
    try:
        socket = await _StraightConnect(url, **options)
    except InvalidHandshake as error:
        raise Unreachable(
            f"the riseml server at {address} opens no streams into jobs ({error})",
            "it may be older than this command: `riseml server stop`, then try again",
        ) from None
    except (OSError, WebSocketException) as error:
        refusal = explain_distrust(address.url, address.authority, error)
        raise refusal or Unreachable(f"the riseml server at {address} does not answer: {error}") from None
    async with socket:
        yield socket


class StreamConnection:
    """One open stream. It reads all the time, so that it notices grants of the server, and that the server is gone."""

    def __init__(self, socket: ClientConnection, address: Address) -> None:
        self._socket = socket
        self._address = address
        self._to_server = FlowWindow()
        self._from_server = FlowWindow()
        self._granted = asyncio.Condition()
        self._inbox: asyncio.Queue[StreamMessage | None] = asyncio.Queue()  # bounded by the window; None: the end
        self._reading: asyncio.Task[None] | None = None

    async def begin(self, request: CommandRequest | None) -> None:
        """Send the request, and wait until the stream is open.

        Raises:
            RisemlError: it cannot be opened.
        """
        self._reading = asyncio.create_task(self._read_messages())
        if request is not None:
            await self._send_message(request)
        first = await self.receive()
        if not isinstance(first, StreamReady):
            raise self._make_lost_error()

    def stop(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()

    async def receive(self) -> StreamMessage:
        """Return the next message. After a piece was passed on, call `grant` with its size.

        Raises:
            RisemlError: the server refused, or the stream failed.
            Unreachable: the connection broke.
        """
        message = await self._inbox.get()
        if message is None:
            raise self._make_lost_error()
        if isinstance(message, StreamFailure):
            raise make_error(asdict(message))
        return message

    async def grant(self, amount: int) -> None:
        """Let the server send `amount` bytes more."""
        self._from_server.grant(amount)
        await self._send_message(WindowUpdate(amount))

    async def send_input(self, content: bytes) -> None:
        """Send bytes for the job; wait while the job takes none."""
        while content:
            async with self._granted:
                while not self._to_server.left:
                    await self._granted.wait()
                part, content = self._to_server.take_part(content)
            await self._send_message(ChannelData(Channel.INPUT, part))

    async def end_input(self) -> None:
        """Say that no more input comes."""
        await self._send_message(ChannelEnd(Channel.INPUT))

    async def resize(self, size: WindowSize) -> None:
        """Say that the terminal has another size."""
        await self._send_message(size)

    async def _send_message(self, message: StreamMessage) -> None:
        try:
            await self._socket.send(encode_message(message))
        except ConnectionClosed:
            return  # `receive` raises the error, after the messages that came before

    async def _read_messages(self) -> None:
        try:
            async for data in self._socket:
                message = decode_message(data if isinstance(data, bytes) else data.encode())
                if isinstance(message, WindowUpdate):
                    async with self._granted:
                        self._to_server.grant(message.amount)
                        self._granted.notify_all()
                    continue
                if isinstance(message, ChannelData):
                    self._from_server.take(len(message.content))
                self._inbox.put_nowait(message)
        except (ConnectionClosed, OSError, ValueError):
            return
        finally:
            self._inbox.put_nowait(None)

    def _make_lost_error(self) -> Unreachable:
        return Unreachable(
            f"the riseml server at {self._address} broke the stream; jobs run on", "`riseml status`, then try again"
        )
