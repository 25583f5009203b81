"""The connections of the web page's port, where every user of the machine can connect: bounded in number, in time until
a request is complete up to its body, and in time without progress of an answer. They take no resources from the unix
socket of the same server.

A connection that has carried a request of an open page (`mark_proven`) keeps its place. When all places are taken, a
new connection gets that of the oldest other one: of another user of the machine first.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from ipaddress import ip_address
from typing import Any

import h11
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 512
"""At the same time. A browser opens six for each host name, and one for each stream into a job."""

MOST_FOREIGN = 64
"""Of them from other users of the machine."""

HEAD_PATIENCE = 10.0
"""Seconds from the first byte of a request, or from the beginning of the connection, to the end of its headers."""

WRITE_PATIENCE = 30.0
"""Seconds for a client to take what the server has given to the kernel in one piece, at most some hundred KiB."""

_SCOPE_KEY = "riseml-connection"  # the connection of a request, in the state of its scope
_SUPERUSER = 0

_MAPPED_PREFIX = "::ffff:"
"""Begins an IPv4 address in a socket of IPv6: such a socket reaches a listener of IPv4, too."""

log = logging.getLogger(__name__)


class WebConnection(H11Protocol):
    """One connection. The server's log has no line for an invalid request: another user could fill it."""

    def __init__(self, *options: Any, **named_options: Any) -> None:
        super().__init__(*options, **named_options)
        self.logger = log  # `configure_logging` leaves out its warnings
        self.app_state = {**self.app_state, _SCOPE_KEY: self}
        self.is_proven = False
        self.is_foreign = False
        self.began = self.loop.time()
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that `resume_writing` says that the client has taken all
        user = find_peer_user(transport.get_extra_info("sockname"), transport.get_extra_info("peername"))
        self.is_foreign = user not in (None, os.geteuid(), _SUPERUSER)
        if self._has_place():
            self._watch_head()
        else:
            transport.abort()

    def _has_place(self) -> bool:
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

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(WRITE_PATIENCE, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._stop_timers()  # a stream has its own
        self.transport.set_write_buffer_limits()
        super().handle_websocket_upgrade(event)

    def _watch_head(self) -> None:
        """Let the timer run while the server waits for the end of a head."""
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._stop_head_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_PATIENCE, self.transport.abort)

    def _stop_timers(self) -> None:
        self._stop_head_timer()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def mark_proven(scope: Scope) -> None:
    """Note that the connection of a request belongs to an open page: it keeps its place."""
    connection = scope.get("state", {}).pop(_SCOPE_KEY, None)
    if isinstance(connection, WebConnection):
        connection.is_proven = True


def is_foreign(scope: Scope) -> bool:
    """Return True when another user of this machine has sent a request."""
    connection = scope.get("state", {}).get(_SCOPE_KEY)
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
