"""One HTTP connection of a listener that clients reach whom the server does not know yet: bounded in time until the
headers of a request are complete, in the least rate at which its body comes, and in time without progress of an answer.
Such connections take no resources from the unix socket of the same server.

The kinds of listeners say how many connections they keep, and which end first: `web.connections` and
`tls.tls_connections`. A connection that has carried a request of a known sender (`mark_proven`) keeps its place.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Any

import h11
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_PATIENCE = 10.0
"""Seconds from the first byte of a request, or from the beginning of the connection, to the end of its headers."""

BODY_PATIENCE = 30.0
"""Seconds between two measurements of how much of a body has come."""

LEAST_BODY = 16 << 10
"""Bytes of a body that come between two measurements, unless the server itself reads no further meanwhile."""

WRITE_PATIENCE = 30.0
"""Seconds for a client to take what the server has given to the kernel in one piece, at most some hundred KiB."""

_SCOPE_KEY = "riseml-connection"  # the connection of a request, in the state of its scope

log = logging.getLogger(__name__)


class BoundedConnection(H11Protocol, ABC):
    """One connection. The server's log has no line for an invalid request: another user could fill it."""

    def __init__(self, *options: Any, **named_options: Any) -> None:
        super().__init__(*options, **named_options)
        self.logger = log  # `configure_logging` leaves out its warnings
        self.app_state = {**self.app_state, _SCOPE_KEY: self}
        self.is_proven = False
        self._is_stream = False  # it speaks WebSocket now: no request follows, and no body
        self.began = self.loop.time()
        self._received = 0  # bytes since the last measurement of a body
        self._head_timer: asyncio.TimerHandle | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        # So that `resume_writing` says that the client has taken all. With 0, asyncio's TLS would pause without end.
        transport.set_write_buffer_limits(high=1)
        if self.take_place():
            self._watch_request()
        else:
            transport.abort()

    @abstractmethod
    def take_place(self) -> bool:
        """Return True when this connection may stay, after ending an older one where that is necessary."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)
        self._watch_request()

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
        self._is_stream = True  # `_watch_request` follows this call
        self._stop_timers()
        self.transport.set_write_buffer_limits()
        super().handle_websocket_upgrade(event)

    def _watch_request(self) -> None:
        """Let one timer run while the server waits for the end of a head, and the other while it waits for a body."""
        state = None if self._is_stream or self.transport.is_closing() else self.conn.their_state
        if state is not h11.IDLE:
            self._stop_head_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_PATIENCE, self.transport.abort)
        if state is not h11.SEND_BODY:
            self._stop_body_timer()
        elif self._body_timer is None:
            self._received = 0
            self._body_timer = self.loop.call_later(BODY_PATIENCE, self._measure_body)

    def _measure_body(self) -> None:
        """End a connection whose client sends a body too slowly. A server that does not read measures nothing."""
        self._body_timer = None
        if self._received >= LEAST_BODY or self.flow.read_paused:
            self._watch_request()
        else:
            self.transport.abort()

    def _stop_timers(self) -> None:
        self._stop_head_timer()
        self._stop_body_timer()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None


def find_connection(scope: Scope) -> BoundedConnection | None:
    """Return the connection of a request; None when it did not come over a bounded one."""
    connection = scope.get("state", {}).get(_SCOPE_KEY)
    return connection if isinstance(connection, BoundedConnection) else None


def mark_proven(scope: Scope) -> None:
    """Note that the sender of a request is known: its connection keeps its place. Later readers of the request do not
    find the connection any more."""
    connection = find_connection(scope)
    if connection is not None:
        connection.is_proven = True
        scope["state"].pop(_SCOPE_KEY)
