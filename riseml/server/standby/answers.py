"""What a standby answers: who it is and for whom it waits at /v1/server, and to everything else that it only waits."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from riseml import __version__, wire
from riseml.base.errors import StandbyServer
from riseml.base.settings import Settings
from riseml.base.wire_revision import find_package, read_revision
from riseml.server.api.failures import show_failure
from riseml.server.api.views.record_views import show_time
from riseml.server.clock import now
from riseml.server.http_config import configure_http
from riseml.server.identity import read_identity
from riseml.server.standby.turn import Awaited
from riseml.server.tls.name_gate import NameGate
from riseml.server.tls.tls_listener import TlsListener


class StandbyApi:
    """The application of a standby.

    Args:
        settings: name its home.
        find_awaited: returns the server that it waits for.
        is_public: it answers a network, where anybody may ask: nothing but the address of the other server.
    """

    def __init__(self, settings: Settings, find_awaited: Callable[[], Awaited], *, is_public: bool = False) -> None:
        self._settings = settings
        self._find_awaited = find_awaited
        self._is_public = is_public
        self._started_at = now()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; refuse a WebSocket."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1013, "reason": "this server is a standby"})
            return
        if scope["type"] != "http":
            return
        is_question = not self._is_public and scope["method"] == "GET" and scope["path"] == "/v1/server"
        status, body = (200, self.show_server()) if is_question else self._refuse()
        content = json.dumps(body).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def show_server(self) -> wire.ServerView:
        """Return the properties of this server for clients."""
        awaited = self._find_awaited()
        return {
            "version": __version__,
            "revision": read_revision(),
            "package": find_package(),
            "id": read_identity(self._settings.identity) or "",
            "pid": os.getpid(),
            "started_at": show_time(self._started_at) or "",
            "home": str(self._settings.home),
            "executor": "",
            "note": "",
            "missing_engine": "",
            "engine": "",
            "output": str(self._settings.output),
            "data": str(self._settings.data),
            "problem": "",
            "active": 0,
            "closing": 0,
            "searches": 0,
            "state": "standby",
            "holder": awaited.holder,
            "holder_since": awaited.since,
            "holder_address": awaited.address,
        }

    def _refuse(self) -> tuple[int, wire.Failure]:
        awaited = self._find_awaited()
        where = f"ask {awaited.address}" if awaited.address else "ask that one"
        other = (awaited.address or "another server") if self._is_public else awaited.holder
        error = StandbyServer(
            f"this server is a standby of {other}", f"{where}; this one answers as soon as it has taken over"
        )
        return error.http_status, show_failure(error)


class StandbyListener:
    """Answers at a socket, and at the address of a team, while a server is a standby.

    Args:
        api: answers at the socket.
        listener: the socket.
        tls: the listener of a team; None: the server has none, or another one listens there now.
        tls_api: answers there.

    Example:
        with StandbyListener(api, listening_socket):
            ...
    """

    def __init__(
        self, api: ASGIApp, listener: socket.socket, tls: TlsListener | None = None, tls_api: ASGIApp | None = None
    ) -> None:
        self._listener = listener
        self._tls = tls
        self._tls_api = tls_api
        self._server = uvicorn.Server(configure_http(api))
        self._thread = threading.Thread(target=self._serve, name="standby", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        asyncio.run(self._answer())

    async def _answer(self) -> None:
        if self._tls is None or self._tls_api is None:
            await self._server.serve(sockets=[self._listener])
            return
        await self._tls.resume(NameGate(self._tls_api, self._tls.names))
        try:
            await self._server.serve(sockets=[self._listener])
        finally:
            await self._tls.suspend()
            self._tls.close()
