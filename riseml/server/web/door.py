"""The listener of the web page. Nothing listens on TCP until `riseml web` asks for it; its port survives a restart."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from riseml.errors import Conflict, RisemlError
from riseml.server.web.access import WebAccess
from riseml.server.web.assets import read_assets
from riseml.server.web.gate import WebGate
from riseml.stream_messages import LONGEST_MESSAGE

_ADDRESS = "127.0.0.1"
_LAST_ANSWERS = 1  # seconds that pending answers get when the door closes
_WAITING = 128  # connections that the kernel keeps until the server takes them

log = logging.getLogger(__name__)


class WebDoor:
    """Opens and closes the listener. Its coroutines run in the event loop of the server.

    Args:
        access: keeps the port, and knows who may pass.
    """

    def __init__(self, access: WebAccess) -> None:
        self.access = access
        self._server: _WebServer | None = None
        self._serving: asyncio.Task[None] | None = None
        self._port: int | None = None

    @property
    def port(self) -> int | None:
        """Where it listens now; None: nowhere."""
        return self._port

    async def open(self, api: ASGIApp, port: int | None) -> int:
        """Listen, and return the port: the one that was asked for, that it had before, or a free one.

        Raises:
            Conflict: the port is in use, or the user may not listen there.
        """
        if self._port is not None and port in (None, self._port):
            return self._port
        listener = self._listen_anywhere() if port is None else _listen(port)
        await self.suspend()
        self._start(api, listener)
        self.access.remember(listener.getsockname()[1])
        log.info("the web page is open at http://%s:%d", _ADDRESS, self._port)
        return listener.getsockname()[1]  # type: ignore[no-any-return]  # the type of an address is not known

    async def resume(self, api: ASGIApp) -> None:
        """Listen where an earlier server of this home did.

        When that port is taken, no page is trusted any more: the program that has it may have asked open pages.
        """
        if self.access.port is None:
            return
        try:
            self._start(api, _listen(self.access.port))
        except RisemlError as error:
            log.warning("the web page stays closed, and its sessions end: %s", error.message)
            self.access.forget()

    async def suspend(self) -> None:
        """Stop listening; the next server listens again."""
        if self._server is None or self._serving is None:
            return
        self._server.should_exit = True
        await self._serving
        self._server, self._serving, self._port = None, None, None

    async def close(self) -> None:
        """Stop listening, and end all sessions."""
        self.access.forget()
        await self.suspend()
        log.info("the web page is closed")

    def _listen_anywhere(self) -> socket.socket:
        """Listen at the port that the door had before, else at a free one."""
        try:
            return _listen(self.access.port or 0)
        except Conflict:
            return _listen(0)

    def _start(self, api: ASGIApp, listener: socket.socket) -> None:
        port = listener.getsockname()[1]
        config = uvicorn.Config(
            WebGate(api, self.access, read_assets(), port),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=_LAST_ANSWERS,
            ws="websockets-sansio",
            ws_max_size=LONGEST_MESSAGE,
            ws_ping_interval=None,
            ws_per_message_deflate=False,
        )
        self._server, self._port = _WebServer(config), port
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))


class _WebServer(uvicorn.Server):
    """A server beside that of the unix socket, which handles the signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(port: int) -> socket.socket:
    """Return a socket that listens at a port of loopback; 0: at a free one.

    Raises:
        Conflict: it cannot.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_ADDRESS, port))
        listener.listen(_WAITING)
    except OSError as error:
        listener.close()
        hint = "choose another with `riseml web --port N`"
        if error.errno == errno.EACCES:
            raise Conflict(f"you may not listen at port {port}", hint) from None
        raise Conflict(f"port {port} of {_ADDRESS} is in use by another program", hint) from None
    return listener
