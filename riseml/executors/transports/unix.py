"""HTTP over a unix socket, as the SDK has it, with two things mended: connections are used again whatever the path of
a request is (the SDK keeps one for each path, and through a tunnel each of them is a channel), and a socket that cannot
be connected is closed (the SDK leaves it to the garbage collector).
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

_KEPT = 10  # connections


class SocketAdapter(HTTPAdapter):
    """Sends every request to one socket.

    Args:
        path: of the socket.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._pool = _Pool(path)

    def get_connection_with_tls_context(
        self,
        request: PreparedRequest,
        verify: bool | str | None,  # noqa: FBT001 - requests gives it
        proxies: Mapping[str, str] | None = None,
        cert: Any = None,
    ) -> HTTPConnectionPool:
        return self._pool

    def get_connection(self, url: str | bytes, proxies: Mapping[str, str] | None = None) -> HTTPConnectionPool:
        """What versions of requests before 2.32 ask."""
        return self._pool

    def request_url(self, request: PreparedRequest, proxies: Mapping[str, str] | None) -> str:
        return request.path_url

    def close(self) -> None:
        super().close()
        self._pool.close()


class _Pool(HTTPConnectionPool):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", maxsize=_KEPT)
        self._path = path

    def _new_conn(self) -> HTTPConnection:
        return _Connection(self._path)


class _Connection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(self.timeout)
            made.connect(self._path)
        except BaseException:
            made.close()
            raise
        self.sock = made
