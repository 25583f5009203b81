"""The connections of the web page's port, where every user of the machine can connect: bounded in number, and in time
until a request is complete up to its body. They take no resources from the unix socket of the same server.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 512
"""At the same time. A browser opens six for each host name, and one for each stream into a job."""

HEAD_PATIENCE = 10.0
"""Seconds from the first byte of a request, or from the beginning of the connection, to the end of its headers."""

log = logging.getLogger(__name__)


class DoorConnection(H11Protocol):
    """One connection. The server's log has no line for an invalid request: another user could fill it."""

    def __init__(self, *options: Any, **named_options: Any) -> None:
        super().__init__(*options, **named_options)
        self.logger = log  # `configure_logging` leaves out its warnings
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def _watch_head(self) -> None:
        """Let the timer run while the server waits for the end of a head."""
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._stop_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_PATIENCE, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
