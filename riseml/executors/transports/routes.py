"""The ways to an engine: a unix socket of this machine, TCP with or without TLS, an ssh tunnel.

riseml switches TCP keepalive on, which the SDK does not: otherwise a follower of a log would wait forever for a host
that has lost its power. TLS always verifies the engine. Proxies and certificate bundles of the environment are not
used.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

import docker
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

from riseml.base.records import dataclass
from riseml.executors.transports.diagnosis import Diagnosis, describe_cause
from riseml.executors.transports.ssh_command import find_destination
from riseml.executors.transports.tls_bridge import bridge_tls, explain_tls_failure
from riseml.executors.transports.tunnel import Tunnel
from riseml.executors.transports.tunnel_phases import TunnelTiming
from riseml.spec.pool.types import HostSpec, Tls
from riseml.spec.scalars.engine_url import EngineUrl, Scheme, parse_engine_url
from riseml.spec.scalars.texts import BadText

_LOCAL_HINT = "is it running? `docker info` asks it directly; DOCKER_HOST chooses another one"
_REMOTE_HINT = "is the host up, and does its Docker Engine listen there? `riseml pool check` looks closer"
_SOCKET_OPTIONS = frozenset(dir(socket))  # the ones that this kernel and Python have
_KEPT_CONNECTIONS = 10  # connections of one client to a unix socket


@dataclass(frozen=True, slots=True)
class Keepalive:
    """When a TCP connection counts as dead."""

    idle: int = 10  # seconds of silence until the kernel sends the first probe
    interval: int = 5  # seconds between two probes
    count: int = 3  # probes without an answer until the connection is dead
    unconfirmed: int = 20  # seconds until a connection is dead whose sent data is not confirmed

    def list_socket_options(self) -> list[tuple[int, int, int]]:
        """Return level, option and value of each option that this kernel has."""
        values = {
            "TCP_KEEPIDLE": self.idle,
            "TCP_KEEPINTVL": self.interval,
            "TCP_KEEPCNT": self.count,
            "TCP_USER_TIMEOUT": self.unconfirmed * 1000,  # milliseconds
        }
        tcp_options = [
            (socket.IPPROTO_TCP, getattr(socket, name), value)
            for name, value in values.items()
            if name in _SOCKET_OPTIONS
        ]
        return [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *tcp_options]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long calls to an engine wait."""

    brief: float = 0.7  # seconds for a question that a healthy engine answers at once, while others wait
    quick: float = 10.0  # seconds for lists and inspections
    slow: float = 120.0  # seconds for creates and starts, which wait for disks
    tcp: Keepalive = field(default_factory=Keepalive)
    ssh: TunnelTiming = field(default_factory=TunnelTiming)


class Transport(Protocol):
    """A way to one engine."""

    def connect(self, version: str, timeout: float) -> docker.APIClient:
        """Return a client.

        Args:
            version: the version of the Docker Engine API.
            timeout: seconds that a call waits for an answer.

        Raises:
            Unreachable: there is no way at present.
        """

    def dial(self, timeout: float) -> socket.socket:
        """Return a new connection to the engine that carries plain HTTP, for requests that the SDK does not make.

        Args:
            timeout: seconds that connecting, and each call of the socket, may take.

        Raises:
            Unreachable: there is no way at present.
            OSError: the engine does not answer.
        """

    def explain_failure(self, error: Exception) -> Diagnosis:
        """Return why a call failed."""

    def reconnect(self) -> None:
        """Try at once, instead of after the current delay."""

    def close(self) -> None:
        """End every process that the transport started."""


class SocketTransport:
    """A unix socket of this machine; also any other url that only the SDK knows.

    Args:
        url: `unix:///path`.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def connect(self, version: str, timeout: float) -> docker.APIClient:
        return _connect_socket(self._url, version, timeout)

    def dial(self, timeout: float) -> socket.socket:
        return _dial_socket(self._url.removeprefix("unix://"), timeout)

    def explain_failure(self, error: Exception) -> Diagnosis:
        if self._url.startswith("ssh://"):
            return Diagnosis(
                "riseml reaches an engine over ssh as a host of its pool", f"name it in pool.yml: `url: {self._url}`"
            )
        return Diagnosis(describe_cause(error), _LOCAL_HINT)

    def reconnect(self) -> None:
        """Do nothing: every call connects."""

    def close(self) -> None:
        """Do nothing: there is no process."""


class TcpTransport:
    """A TCP port, with mutual TLS or without TLS.

    Args:
        url: host and port.
        tls: the engine's authority and riseml's certificate; None: no TLS.
        keepalive: when a connection counts as dead.
    """

    def __init__(self, url: EngineUrl, tls: Tls | None, keepalive: Keepalive) -> None:
        self._url = url
        self._tls = tls
        self._keepalive = keepalive

    def connect(self, version: str, timeout: float) -> docker.APIClient:
        scheme = "http" if self._tls is None else "https"
        client = _make_client(str(self._url).replace("tcp", scheme, 1), version, timeout)
        client.mount(f"{scheme}://", _KeepaliveAdapter(self._keepalive))
        if self._tls is not None:
            client.verify = self._tls.ca
            client.cert = (self._tls.cert, self._tls.key) if self._tls.cert else None
        return client

    def dial(self, timeout: float) -> socket.socket:
        connection = socket.create_connection((self._url.host, self._url.port or 0), timeout)
        try:
            for option in self._keepalive.list_socket_options():
                connection.setsockopt(*option)
            return connection if self._tls is None else _secure_socket(connection, self._url.host, self._tls)
        except BaseException:
            connection.close()
            raise

    def explain_failure(self, error: Exception) -> Diagnosis:
        diagnosis = None if self._tls is None else explain_tls_failure(error, self._url, self._tls)
        return diagnosis or Diagnosis(describe_cause(error), _REMOTE_HINT)

    def reconnect(self) -> None:
        """Do nothing: every call connects."""

    def close(self) -> None:
        """Do nothing: there is no process."""


class SshTransport:
    """A tunnel to the engine's socket on its host."""

    def __init__(self, tunnel: Tunnel) -> None:
        self._tunnel = tunnel

    def connect(self, version: str, timeout: float) -> docker.APIClient:
        return _connect_socket(f"unix://{self._tunnel.open()}", version, timeout)

    def dial(self, timeout: float) -> socket.socket:
        return _dial_socket(str(self._tunnel.open()), timeout)

    def explain_failure(self, error: Exception) -> Diagnosis:
        return self._tunnel.explain_failure() or Diagnosis(describe_cause(error), _REMOTE_HINT)

    def reconnect(self) -> None:
        self._tunnel.reconnect()

    def close(self) -> None:
        self._tunnel.close()


def find_transport(spec: HostSpec, home: Path, timeouts: Timeouts) -> Transport:
    """Return the way to a host of the pool.

    Args:
        spec: the host.
        home: RISEML_HOME, which has the pinned host keys and the sockets of the ssh tunnels.
        timeouts: how long calls wait.
    """
    url = parse_engine_url(spec.url)
    if url.scheme is Scheme.UNIX:
        return SocketTransport(spec.url)
    if url.scheme is Scheme.TCP:
        return TcpTransport(url, spec.tls, timeouts.tcp)
    return SshTransport(Tunnel(find_destination(spec, home), home / "tunnels", timeouts.ssh))


def find_plain_transport(url: str, timeouts: Timeouts) -> Transport:
    """Return the way to an engine of which only the URL is known, as in DOCKER_HOST."""
    try:
        engine_url = parse_engine_url(url)
    except BadText:
        return SocketTransport(url)  # the first call fails with the SDK's own words
    return TcpTransport(engine_url, None, timeouts.tcp) if engine_url.scheme is Scheme.TCP else SocketTransport(url)


class UnixSocketAdapter(HTTPAdapter):
    """Sends every request of a session to one unix socket, as the SDK's adapter does it, with two differences.

    Connections are reused for every path. The SDK keeps one pool of connections for each path of a request; through a
    tunnel each of these connections is a channel of ssh. Measured: after 30 inspections of different containers the
    SDK's client holds 25 connections (its limit), this one holds 1. And a socket that cannot be connected is closed
    here, where the SDK leaves it to the garbage collector.

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


class _KeepaliveAdapter(HTTPAdapter):
    """Makes connections with TCP keepalive."""

    def __init__(self, keepalive: Keepalive) -> None:
        self._options = keepalive.list_socket_options()
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, socket_options=self._options, **kwargs)


def _connect_socket(url: str, version: str, timeout: float) -> docker.APIClient:
    client = _make_client(url, version, timeout)
    if url.startswith("unix://"):
        client.mount("http+docker://", UnixSocketAdapter(url.removeprefix("unix://")))
    return client


def _dial_socket(path: str, timeout: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _secure_socket(plain: socket.socket, host: str, tls: Tls) -> socket.socket:
    """Return a connection as the SDK makes it: the engine is always verified."""
    context = ssl.create_default_context(cafile=tls.ca)
    if tls.cert:
        context.load_cert_chain(tls.cert, tls.key)
    timeout = plain.gettimeout()
    connection = bridge_tls(context.wrap_socket(plain, server_hostname=host))
    connection.settimeout(timeout)
    return connection


def _make_client(url: str, version: str, timeout: float) -> docker.APIClient:
    options: dict[str, Any] = {"base_url": url, "version": version, "timeout": timeout}
    client = docker.APIClient(**options)
    client.trust_env = False  # use no proxies and no certificate bundles of the environment
    return client
