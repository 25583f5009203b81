"""One HTTP request to a port of a job, over a stream into it.

The job controls the content, size and speed of its answer. So the head of an answer is limited in size and time, and
the server holds one piece of its body at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import h11

from riseml.base.stream_messages import LONGEST_PIECE, Channel, ChannelData
from riseml.executors.job_streams import JobStream
from riseml.server.access.stream_relay import end_in_thread

_LONGEST_HEAD = 32 * 1024  # bytes of an answer's status and headers
_MOST_INTERIM = 5  # answers with a status of 1xx before the answer itself
_HEAD_DEADLINE = 120.0  # seconds; TensorBoard reads large files before it answers
_SILENCE = 120.0  # seconds between two pieces of a body


class BadAnswer(Exception):
    """The answer of a job's program is not HTTP, or does not come in time."""


class JobExchange:
    """A request and its answer; the connection is used once.

    Args:
        stream: an open stream to the port; `close` ends it.
    """

    def __init__(self, stream: JobStream) -> None:
        stream.socket.settimeout(0.0)  # asyncio requires a non-blocking socket
        self._stream = stream
        self._connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        self._received = stream.received

    async def ask(self, request: h11.Request, body: bytes) -> h11.Response:
        """Send a request, and return the head of the answer.

        Raises:
            BadAnswer: no answer came, or it is not HTTP.
        """
        try:
            async with asyncio.timeout(_HEAD_DEADLINE):
                sending = asyncio.create_task(self._send_request(request, body))
                try:
                    return await self._read_head()
                finally:
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
        except (OSError, ValueError, TimeoutError, h11.ProtocolError) as error:
            raise BadAnswer(_describe_error(error)) from error

    async def read_body(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces.

        Raises:
            BadAnswer: it ends too early, or nothing arrives for a long time.
        """
        try:
            while True:
                async with asyncio.timeout(_SILENCE):
                    event = await self._read_event()
                if not isinstance(event, h11.Data):
                    return
                yield bytes(event.data)
        except (OSError, ValueError, TimeoutError, h11.ProtocolError) as error:
            raise BadAnswer(_describe_error(error)) from error

    def close(self) -> None:
        """Close the connection."""
        self._stream.socket.close()
        end_in_thread(self._stream)

    async def _send_request(self, request: h11.Request, body: bytes) -> None:
        """Send the request. The program may answer before it has read all of the request, so a broken pipe is not an
        error."""
        loop = asyncio.get_running_loop()
        parts = [self._connection.send(request), *([self._connection.send(h11.Data(data=body))] if body else [])]
        data = b"".join(part or b"" for part in (*parts, self._connection.send(h11.EndOfMessage())))
        for at in range(0, len(data), LONGEST_PIECE):
            piece = self._stream.codec.encode(ChannelData(Channel.INPUT, data[at : at + LONGEST_PIECE]))
            await loop.sock_sendall(self._stream.socket, piece or b"")

    async def _read_head(self) -> h11.Response:
        for _ in range(_MOST_INTERIM + 1):
            event = await self._read_event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                break
        raise ValueError("an answer without a status")

    async def _read_event(self) -> object:
        while (event := self._connection.next_event()) is h11.NEED_DATA:
            self._connection.receive_data(await self._read_bytes())
        return event

    async def _read_bytes(self) -> bytes:
        """Return the next bytes of the port; empty at its end."""
        while True:
            data, self._received = self._received, b""
            data = data or await asyncio.get_running_loop().sock_recv(self._stream.socket, LONGEST_PIECE)
            pieces = (
                [message.content for message in self._stream.codec.decode(data) if isinstance(message, ChannelData)]
                if data
                else []
            )
            content = b"".join(pieces)
            if content or not data:
                return content


def _describe_error(error: Exception) -> str:
    return "no answer came in time" if isinstance(error, TimeoutError) else f"its answer is not HTTP: {error}"
