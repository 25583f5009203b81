"""The connections of the unix socket: the kernel says which user is at the other end (SO_PEERCRED)."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

_CREDENTIALS = struct.Struct("=iII")  # process, user, group, as unix(7) has them
_SCOPE_KEY = "riseml-peer-user"  # the uid of the other end, in the state of a request's scope


class SocketConnection(H11Protocol):
    """One connection. The kernel has noted the user when the client connected: no later change of it counts."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.app_state = {**self.app_state, _SCOPE_KEY: _read_peer_user(transport.get_extra_info("socket"))}


def _read_peer_user(connection: Any) -> int:
    _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(user)


def find_peer(scope: Scope) -> int | None:
    """Return the uid of the client that has sent a request; None: it did not come over a `SocketConnection`."""
    peer = scope.get("state", {}).get(_SCOPE_KEY)
    return peer if isinstance(peer, int) else None
