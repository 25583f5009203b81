"""HTTP over a unix socket, as the SDK's adapter does it, with two differences.

Connections are reused for every path. The SDK keeps one pool of connections for each path of a request; through a
tunnel each of these connections is a channel of ssh. Measured: after 30 inspections of different containers the SDK's
client holds 25 connections (its limit), this one holds 1. And a socket that cannot be connected is closed here, where
the SDK leaves it to the garbage collector.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

_KEPT_CONNECTIONS = 10


class UnixSocketAdapter(HTTPAdapter):
    """Sends every request of a session to one socket.

    Args:
        path: the path of the socket.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._pool = _UnixSocketPool(path)

    def get_connection_with_tls_context(
        self,
        request: PreparedRequest,
        verify: bool | str | None,  # noqa: FBT001 - requests gives it
        proxies: Mapping[str, str] | None = None,
        cert: Any = None,
    ) -> HTTPConnectionPool:
        return self._pool

    def get_connection(self, url: str | bytes, proxies: Mapping[str, str] | None = None) -> HTTPConnectionPool:
        """Return the pool; versions of requests before 2.32 call this method."""
        return self._pool

    def request_url(self, request: PreparedRequest, proxies: Mapping[str, str] | None) -> str:
        return request.path_url

    def close(self) -> None:
        super().close()
        self._pool.close()


class _UnixSocketPool(HTTPConnectionPool):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", maxsize=_KEPT_CONNECTIONS)
        self._path = path

    def _new_conn(self) -> HTTPConnection:
        return _UnixSocketConnection(self._path)


class _UnixSocketConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(self.timeout)
            connection.connect(self._path)
        except BaseException:
            connection.close()
            raise
        self.sock = connection
