"""The connections of the web page's port, where every user of the machine can connect: bounded in number, and in time
(`bounded_connection`).

A connection that has carried a request of an open page (`mark_proven`) keeps its place. When all places are taken, a
new connection gets that of the oldest other one: of another user of the machine first.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from ipaddress import ip_address
from typing import Any

from starlette.types import Scope

from riseml.server.bounded_connection import BoundedConnection, find_connection

MOST_CONNECTIONS = 512
"""At the same time. A browser opens six for each host name, and one for each stream into a job."""

MOST_FOREIGN = 64
"""Of them from other users of the machine."""

_SUPERUSER = 0

_MAPPED_PREFIX = "::ffff:"
"""Begins an IPv4 address in a socket of IPv6: such a socket reaches a listener of IPv4, too."""


class WebConnection(BoundedConnection):
    """One connection to the port of the web page."""

    def __init__(self, *options: Any, **named_options: Any) -> None:
        super().__init__(*options, **named_options)
        self.is_foreign = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        user = find_peer_user(transport.get_extra_info("sockname"), transport.get_extra_info("peername"))
        self.is_foreign = user not in (None, os.geteuid(), _SUPERUSER)
        super().connection_made(transport)

    def take_place(self) -> bool:
        """Return True when this connection may stay, after ending an older one where that is necessary."""
        connections = [
            connection
            for connection in self.connections
            if isinstance(connection, WebConnection) and connection is not self
        ]
        foreign = [connection for connection in connections if connection.is_foreign]
        if self.is_foreign and len(foreign) >= MOST_FOREIGN:
            return False
        if len(self.connections) <= MOST_CONNECTIONS:
            return True
        candidates = foreign if self.is_foreign else connections
        unproven = [connection for connection in candidates if not connection.is_proven]
        if not unproven:
            return False
        min(unproven, key=lambda connection: (not connection.is_foreign, connection.began)).transport.abort()
        return True


def is_foreign(scope: Scope) -> bool:
    """Return True when another user of this machine has sent a request."""
    connection = find_connection(scope)
    return isinstance(connection, WebConnection) and connection.is_foreign


def find_peer_user(own: Any, peer: Any) -> int | None:
    """Return the uid of the other end of a connection over loopback: Linux says it in /proc/net/tcp. None when it is
    not of this machine, or the kernel does not say.

    Args:
        own: this end, as `getsockname` returns it.
        peer: the other end, as `getpeername` returns it.
    """
    try:
        tables = {"/proc/net/tcp6": ""} if ":" in peer[0] else {"/proc/net/tcp": "", "/proc/net/tcp6": _MAPPED_PREFIX}
        for table, prefix in tables.items():
            user = _find_uid(table, *(_write_address(prefix + host, port) for host, port in (peer[:2], own[:2])))
            if user is not None:
                return user
    except (OSError, ValueError, TypeError, IndexError):
        return None
    return None


def _find_uid(table: str, local: str, remote: str) -> int | None:
    """Return the uid of the socket with these addresses; None when the table has none.

    Raises:
        OSError, ValueError, IndexError: this kernel has no such table.
    """
    with open(table, encoding="ascii") as rows:
        next(rows, None)
        for row in rows:
            fields = row.split(maxsplit=8)
            if (fields[1], fields[2]) == (local, remote):
                return int(fields[7])
    return None


def _write_address(host: str, port: int) -> str:
    """Return an address as a row has it: words of the machine's own byte order in hexadecimal."""
    family = socket.AF_INET if ip_address(host).version == 4 else socket.AF_INET6
    packed = socket.inet_pton(family, host)
    words = (struct.unpack("=I", packed[at : at + 4])[0] for at in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
