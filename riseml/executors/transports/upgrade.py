"""An HTTP request that turns its connection into a two-way stream (`Upgrade: tcp`), as the Docker Engine API has it.

The SDK's own call takes the socket below a reader that may have read ahead: the first bytes of the stream are lost when
they come together with the answer. h11 keeps them apart.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping

import h11

_CHUNK = 65536  # bytes
_MOST_REFUSAL = 65536  # bytes of a refusal that are read


class UpgradeRefused(Exception):
    """The engine refused, with an HTTP status and its words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def upgrade_connection(stream: socket.socket, path: str, body: Mapping[str, object] | None) -> bytes:
    """Send a request, and return the bytes that came behind its answer; then `stream` carries raw bytes both ways.

    Args:
        stream: the connection.
        path: with the query.
        body: is sent as JSON; None: nothing is sent, because the engine takes what follows as the stream.

    Raises:
        UpgradeRefused: the engine refused.
        OSError: the connection broke, or the answer is not HTTP.
    """
    content = b"" if body is None else json.dumps(body).encode()
    headers = {
        "Host": "docker",
        "Content-Type": "application/json",
        "Content-Length": str(len(content)),
        "Connection": "Upgrade",
        "Upgrade": "tcp",
    }
    connection = h11.Connection(h11.CLIENT)
    request = h11.Request(method="POST", target=path, headers=list(headers.items()))
    for event in (request, h11.Data(data=content), h11.EndOfMessage()):
        stream.sendall(connection.send(event) or b"")
    try:
        return _read_answer(stream, connection)
    except h11.RemoteProtocolError as error:
        raise ConnectionError(f"the engine's answer is not HTTP: {error}") from error


def _read_answer(stream: socket.socket, connection: h11.Connection) -> bytes:
    status = 0
    words = b""
    while True:
        event = connection.next_event()
        match event:
            case h11.NEED_DATA:
                connection.receive_data(stream.recv(_CHUNK))
            case h11.InformationalResponse(status_code=101):
                return connection.trailing_data[0]
            case h11.Response():
                status = event.status_code
            case h11.Data():
                words = (words + bytes(event.data))[:_MOST_REFUSAL]
            case h11.EndOfMessage() | h11.PAUSED | h11.ConnectionClosed():
                raise UpgradeRefused(status, _find_message(words))


def _find_message(body: bytes) -> str:
    text = body.decode("utf-8", "replace").strip()
    try:
        answer = json.loads(text)
    except ValueError:
        return text
    return str(answer.get("message", text)) if isinstance(answer, dict) else text
