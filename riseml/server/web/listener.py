"""The listener of the web page. Nothing listens on TCP until `riseml web` asks for it; its port survives a restart.

It listens at 127.0.0.1 and, where the machine has IPv6, also at ::1: browsers try ::1 first for a name below localhost,
such as that of a TensorBoard, and no other program may answer there.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from riseml.base.errors import Conflict, RisemlError
from riseml.model import Caller
from riseml.server.http_config import configure_http
from riseml.server.web.access import WebAccess
from riseml.server.web.assets import read_assets, read_frame
from riseml.server.web.connections import WebConnection
from riseml.server.web.loopback_entrance import LoopbackEntrance
from riseml.server.web.proxied_app_auth import ProxiedAppAuth
from riseml.server.web.proxied_apps import ProxiedApps
from riseml.server.web.web_auth import WebAuth

_ADDRESS = "127.0.0.1"
_OTHER_ADDRESS = "::1"
_NO_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # the machine has no IPv6
_TRIES = 5  # to find a port that is free at both addresses
_WAITING = 128  # connections that the kernel keeps until the server takes them

log = logging.getLogger(__name__)


class WebListener:
    """Opens and closes the listener. Its coroutines run in the event loop of the server.

    Args:
        access: keeps the port, and knows who may pass.
        find_caller: returns whose session it is.
    """

    def __init__(self, access: WebAccess, find_caller: Callable[[str], Caller]) -> None:
        self.access = access
        self._find_caller = find_caller
        self.proxied_apps = ProxiedApps(access.sign)
        self._server: _WebServer | None = None
        self._serving: asyncio.Task[None] | None = None
        self._port: int | None = None
        self._turn = asyncio.Lock()  # serialises open and close: each waits until the previous listener has stopped

    @property
    def port(self) -> int | None:
        """The port where it listens now; None: it does not listen."""
        return self._port

    def count_requests(self) -> int:
        """Return how many requests it answers now."""
        return 0 if self._server is None else len(self._server.server_state.tasks)

    async def open(self, api: ASGIApp, port: int | None) -> int:
        """Listen, and return the port: the requested one, the one that it had before, or a free one.

        Raises:
            Conflict: the port is in use, or the user may not listen there.
        """
        async with self._turn:
            if self._port is not None and port in (None, self._port):
                return self._port
            listeners = self._listen_anywhere() if port is None else _open_listeners(port)
            await self._stop()
            bound_port = self._start(api, listeners)
            self.access.remember(bound_port)
            log.info("the web page is open at http://%s:%d", _ADDRESS, bound_port)
            return bound_port

    async def resume(self, api: ASGIApp) -> None:
        """Listen where an earlier server of this home did.

        When another program has that port, end all sessions: the program may have got requests of open pages.
        """
        if self.access.port is None:
            return
        try:
            self._start(api, _open_listeners(self.access.port))
        except RisemlError as error:
            log.warning("the web page stays closed, and its sessions end: %s", error.message)
            self.access.forget()

    async def suspend(self) -> None:
        """Stop listening; the next server listens again."""
        async with self._turn:
            await self._stop()

    async def _stop(self) -> None:
        if self._server is None or self._serving is None:
            return
        self._server.should_exit = True
        await self._serving
        self._server = None
        self._serving = None
        self._port = None

    async def close(self) -> None:
        """Stop listening, and end all sessions."""
        self.access.forget()  # at once: no request passes while the listener closes
        async with self._turn:
            await self._stop()
            self.access.forget()  # what was about to be opened before
        log.info("the web page is closed")

    def _listen_anywhere(self) -> list[socket.socket]:
        """Listen at the port that it had before, else at a free one."""
        for port in (self.access.port or 0, *[0] * _TRIES):
            try:
                return _open_listeners(port)
            except Conflict as error:
                log.debug("the web page does not open there: %s", error.message)
        return _open_listeners(0)

    def _start(self, api: ASGIApp, listeners: list[socket.socket]) -> int:
        """Serve, and return the port."""
        port: int = listeners[0].getsockname()[1]
        app_auth = ProxiedAppAuth(api, self.proxied_apps, read_frame(), self._find_caller)
        entrance = LoopbackEntrance(self.access, port, self._find_caller)
        web_auth = WebAuth(api, entrance, read_assets(), app_auth)
        self._server = _WebServer(configure_http(web_auth, WebConnection))
        self._port = port
        self._serving = asyncio.create_task(self._server.serve(sockets=listeners))
        return port


class _WebServer(uvicorn.Server):
    """A server beside that of the unix socket, which handles the signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _open_listeners(port: int) -> list[socket.socket]:
    """Return sockets that listen at a port of loopback; 0: at a free one.

    Raises:
        Conflict: they cannot.
    """
    first = _listen_at(socket.AF_INET, _ADDRESS, port)
    try:
        return [first, _listen_at(socket.AF_INET6, _OTHER_ADDRESS, first.getsockname()[1])]
    except OSError as error:
        log.debug("the web page listens at %s alone: %s", _ADDRESS, error)
        return [first]
    except Conflict:
        first.close()
        raise


def _listen_at(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        Conflict: it cannot.
        OSError: the machine has no such address.
    """
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if family is socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        listener.listen(_WAITING)
    except OSError as error:
        listener.close()
        if error.errno in _NO_ADDRESS:
            raise
        hint = "choose another with `riseml web --port N`"
        if error.errno == errno.EACCES:
            raise Conflict(f"you may not listen at port {port}", hint) from None
        raise Conflict(f"port {port} of {address} is in use by another program", hint) from None
    return listener
