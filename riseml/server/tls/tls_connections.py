"""The connections of a team's listener, where every machine of a network can connect: bounded in number for each
address, in time (`bounded_connection`), and in how many requests each key has under way.

A connection over which a valid key has come keeps its place. A new connection without one gets the place of the oldest
such connection of its own address, so that one machine with many slow connections delays no other.
"""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus

from starlette.types import ASGIApp, Receive, Scope, Send

from riseml.server.bounded_connection import BoundedConnection, mark_proven
from riseml.server.gate.refusals import refuse
from riseml.server.gate.request_caller import get_caller

MOST_CONNECTIONS = 8192
"""At the same time."""

MOST_UNPROVEN = 256
"""Of them from one address before a key has come over them."""

MOST_REQUESTS = 256
"""Requests of one key at the same time: each followed log and each stream into a job is one."""


class TlsConnection(BoundedConnection):
    """One connection to the listener of a team."""

    def take_place(self) -> bool:
        """Return True when this connection may stay, after ending an older one where that is necessary."""
        unproven = [
            connection
            for connection in self.connections
            if isinstance(connection, TlsConnection) and connection is not self and not connection.is_proven
        ]
        address = self.client[0] if self.client else ""
        own = [connection for connection in unproven if connection.client and connection.client[0] == address]
        if len(own) >= MOST_UNPROVEN:
            _end_oldest(own)
        elif len(self.connections) > MOST_CONNECTIONS:
            if not unproven:
                return False
            _end_oldest(unproven)
        return True


def _end_oldest(connections: list[TlsConnection]) -> None:
    min(connections, key=lambda connection: connection.began).transport.abort()


class KeyLimit:
    """The application behind the gate: it bounds the requests that each key has under way."""

    def __init__(self, api: ASGIApp) -> None:
        self._api = api
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        mark_proven(scope)
        caller = get_caller(scope)
        name = caller.key or caller.user
        if self._open[name] >= MOST_REQUESTS:
            await _refuse_many(scope, receive, send)
            return
        self._open[name] += 1
        try:
            await self._api(scope, receive, send)
        finally:
            self._open[name] -= 1
            if not self._open[name]:
                del self._open[name]


async def _refuse_many(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1013})
        return
    message = f"this key has {MOST_REQUESTS} requests under way"
    answer = refuse(HTTPStatus.TOO_MANY_REQUESTS, message, "end some of the commands that follow logs, and try again")
    await answer(scope, receive, send)
