"""A relay between a server and its PostgreSQL that can stop passing bytes, as a network does whose cable is cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import make_url

_PIECE = 65536  # bytes
_SOCKET = ".s.PGSQL.5432"  # the name that PostgreSQL's clients look for in a folder


class SilentRelay:
    """Passes the bytes of each connection on until it falls silent. Nothing breaks then, and nothing arrives.

    Args:
        folder: gets the socket; its path is short.
        store: the address of a database whose host is the folder of a socket.
    """

    def __init__(self, folder: Path, store: str) -> None:
        url = make_url(store)
        self._target = Path(str(url.query["host"]), _SOCKET)
        self.store = url.update_query_dict({"host": str(folder)}).render_as_string(hide_password=False)
        folder.mkdir(mode=0o755)
        self._passes = threading.Event()
        self._passes.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / _SOCKET))
        self._listener.listen(64)
        threading.Thread(target=self._accept, name="relay", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError):  # it was shut down by the test
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._sockets:
            with suppress(OSError):  # the other side has closed it
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._passes.set()

    def break_connections(self) -> None:
        """Break all connections, and take no new one: as the death of the process at the near end."""
        self.__exit__(None, None, None)

    def fall_silent(self) -> None:
        """Pass nothing on from now on."""
        self._passes.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._target))
            self._sockets += [client, server]
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, target), name="relayed", daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while piece := source.recv(_PIECE):
                self._passes.wait()
                target.sendall(piece)
            self._passes.wait()
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return
