"""A process of 1,000 clients that go on slowly: `python -m tests.team.slow_clients PORT AUTHORITY_FILE KEY KEY`.

It says `open` when all are connected, waits for the end of its input, and says how many the server has kept. They have
several addresses, so that the server ends none because its address has too many.
"""

from __future__ import annotations

import resource
import select
import socket
import ssl
import sys

OF_EACH_KIND = 250

_OF_ADDRESS = 125  # the server keeps 128 that have not finished their handshake

_OPEN_FILES = 4096


def list_starts(reader: str, writer: str) -> dict[str, bytes | None]:
    """Return what the clients of each kind send at first; None: they begin no TLS.

    Args:
        reader: key of those that ask and read no answer.
        writer: key of those that send a body slowly. With one key for both kinds it would have too many requests.
    """
    known = "Host: localhost\r\nAuthorization: Bearer "
    return {
        "reads nothing": f"GET /openapi.json HTTP/1.1\r\n{known}{reader}\r\n\r\n".encode() * 2,
        "no handshake": None,
        "slow body": f"POST /v1/experiments HTTP/1.1\r\n{known}{writer}\r\nContent-Length: 99999\r\n\r\n{{".encode(),
        "half a head": b"GET /v1/server HTTP/1.1\r\nHost: localhost\r\n",
    }


def open_slow(port: int, place: int, start: bytes | None, context: ssl.SSLContext) -> socket.socket:
    """Return a connection from 127.0.0.`place` that has sent its start."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.bind((f"127.0.0.{place}", 0))
    connection.connect(("127.0.0.1", port))
    if start is None:
        return connection
    secure = context.wrap_socket(connection, server_hostname="localhost")
    secure.sendall(start)
    return secure


def count_open(connections: list[socket.socket]) -> int:
    """Return how many of them the server has not ended."""
    poll = select.poll()
    for connection in connections:
        poll.register(connection, select.POLLRDHUP)
    ended = {file for file, event in poll.poll(0) if event & (select.POLLRDHUP | select.POLLHUP | select.POLLERR)}
    return len(connections) - len(ended)


def main(port: str, authority: str, reader: str, writer: str) -> None:
    """Open the connections, and keep them until the input ends."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_OPEN_FILES, hard), hard))
    context = ssl.create_default_context(cafile=authority)
    starts = [start for start in list_starts(reader, writer).values() for _ in range(OF_EACH_KIND)]
    connections = [open_slow(int(port), 2 + place // _OF_ADDRESS, start, context) for place, start in enumerate(starts)]
    print("open", flush=True)
    sys.stdin.read()
    print(count_open(connections), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
