"""The listener of a server for a team: TLS beside the unix socket, with the same API behind it.

There is no such listener without a certificate and its key: `TlsListener` cannot be made without them.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from riseml.base.errors import Conflict, RisemlError
from riseml.server.clock import now
from riseml.server.http_config import configure_http
from riseml.server.tls.authority import Authority
from riseml.server.tls.certificate_chain import CertificateChain
from riseml.server.tls.host_names import choose_names
from riseml.server.tls.tls_connections import TlsConnection
from riseml.spec.server.types import ListenAddress, ServerConfig

HANDSHAKE_PATIENCE = 10.0
"""Seconds that the handshake of TLS may take."""

MOST_HANDSHAKES = 512
"""At the same time."""

MOST_OF_ADDRESS = 128
"""Of them from one address."""

_WAITING = 1024  # connections that the kernel keeps until the server takes them
_CHECKS = 50  # ticks of uvicorn, a tenth of a second each, between two looks at the files of the certificate
_RENEWALS = 36_000  # ticks between two looks at the end of the own certificate: an hour
_NO_FILES = 1.0  # seconds until the next try when the process has no file left for a connection

log = logging.getLogger(__name__)


class TlsListener:
    """Listens at the address of server.yml from the moment when it is made; it answers between `resume` and `suspend`.

    Args:
        config: of the server.
        home: of the server, with its authority.

    Raises:
        UsageError: the certificate cannot be used.
        StoreError: the authority cannot sign one.
        Conflict: the address is in use, or not one of this machine.
    """

    def __init__(self, config: ServerConfig, home: Path) -> None:
        self.names = choose_names(config)
        self._authority = None if config.certificate is not None else Authority(home / "authority")
        self._renew()
        files = config.certificate if self._authority is None else self._authority.files
        assert files is not None
        self._chain = CertificateChain(files)
        self._address = config.listen
        self._socket = _listen_at(config.listen)
        self._server: _TlsServer | None = None
        self._serving: asyncio.Task[None] | None = None

    async def resume(self, api: ASGIApp) -> None:
        """Answer requests from now on, in this event loop.

        Args:
            api: answers: the gate of names and keys, and the API behind it.
        """
        self._server = _TlsServer(api, self)
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        log.info("this server answers at https://%s as %s", self._address, ", ".join(self.names))

    async def suspend(self) -> None:
        """Answer no more requests; connections wait until the next `resume`."""
        if self._server is None or self._serving is None:
            return
        self._server.should_exit = True
        await self._serving
        self._server = self._serving = None

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()

    @property
    def context(self) -> ssl.SSLContext:
        """How new connections speak TLS."""
        return self._chain.context

    def refresh(self) -> None:
        """Read the files of the certificate again when they have changed."""
        self._chain.refresh()

    def renew(self) -> None:
        """Sign a new certificate when the present one ends soon, if it is one of the own authority."""
        try:
            self._renew()
        except RisemlError as error:
            log.error("%s", error.message)

    def _renew(self) -> None:
        if self._authority is not None and self._authority.renew(self.names, now()):
            log.info("the authority of this server has signed a certificate for %s", ", ".join(self.names))


class _TlsServer(uvicorn.Server):
    """A server beside that of the unix socket, which handles the signals. It accepts connections itself, so that it
    bounds those that have not finished their handshake: uvicorn knows of them afterwards."""

    def __init__(self, api: ASGIApp, listener: TlsListener) -> None:
        super().__init__(configure_http(api, TlsConnection))
        self._listener = listener
        self._accepting: list[asyncio.Task[None]] = []
        self._handshakes: dict[asyncio.Task[None], str] = {}  # the address of each, the oldest first

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.servers = []
        self._accepting = [asyncio.create_task(self._accept(listener)) for listener in sockets or ()]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all connections; the sockets go on to listen."""
        for task in (*self._accepting, *self._handshakes):
            task.cancel()
        await asyncio.gather(*self._accepting, *self._handshakes, return_exceptions=True)
        await super().shutdown()

    async def on_tick(self, counter: int) -> bool:
        if counter % _CHECKS == 0:
            await asyncio.to_thread(self._listener.refresh)
        if counter % _RENEWALS == _RENEWALS - 1:
            await asyncio.to_thread(self._listener.renew)
        return await super().on_tick(counter)

    async def _accept(self, listener: socket.socket) -> None:
        """Take connections, and begin the handshake of each."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(listener)
            except ConnectionError:  # it has ended already
                continue
            except OSError as error:
                log.warning("a connection cannot be accepted: %s", error)
                await asyncio.sleep(_NO_FILES)
                continue
            self._make_room(peer[0])
            task = asyncio.create_task(self._begin(connection))
            self._handshakes[task] = peer[0]
            task.add_done_callback(lambda handshake: self._handshakes.pop(handshake, None))

    def _make_room(self, address: str) -> None:
        """End the oldest handshake where there are too many: one of the same address, if that has too many."""
        same = [task for task, other in self._handshakes.items() if other == address]
        if len(same) >= MOST_OF_ADDRESS:
            self._end(same[0])
        elif len(self._handshakes) >= MOST_HANDSHAKES:
            self._end(next(iter(self._handshakes)))

    def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        self._handshakes.pop(task, None)

    async def _begin(self, connection: socket.socket) -> None:
        """Speak TLS with a client; a client that cannot, or does not, costs nothing but its connection."""
        connection.settimeout(0)
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make_connection,
                connection,
                ssl=self._listener.context,
                ssl_handshake_timeout=HANDSHAKE_PATIENCE,
                ssl_shutdown_timeout=HANDSHAKE_PATIENCE,
            )
        except OSError as error:  # among them ssl.SSLError and TimeoutError
            log.debug("a client did not finish the handshake of TLS: %s", error)
            connection.close()

    def _make_connection(self) -> asyncio.Protocol:
        options = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        return cast(asyncio.Protocol, TlsConnection(**options))


def _listen_at(address: ListenAddress) -> socket.socket:
    """Return a socket that listens.

    Raises:
        Conflict: it cannot.
    """
    hint = "`listen` in server.yml names the address"
    try:
        place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise Conflict(f"the server cannot listen at {address}: {error.strerror or error}", hint) from None
    listener = socket.socket(place[0], socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if place[0] is socket.AF_INET6 and address.is_wildcard:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # IPv4 clients reach it, too
        listener.bind(place[4])
        listener.listen(_WAITING)
        listener.settimeout(0)
    except OSError as error:
        listener.close()
        if error.errno == errno.EACCES:
            message = f"the user of the server may not listen at port {address.port}"
            raise Conflict(message, "choose a port from 1024 up in `listen` of server.yml") from None
        if error.errno == errno.EADDRINUSE:
            raise Conflict(f"{address} is in use by another program", hint) from None
        raise Conflict(f"the server cannot listen at {address}: {error.strerror}", hint) from None
    return listener
