"""The ways to an engine: a unix socket of this machine, TCP with or without TLS, an ssh tunnel.

TCP sockets are kept alive by the kernel, for the SDK sets nothing: whoever follows a log of a host that has lost its
power would wait for ever. TLS always verifies the engine; nothing of the environment (proxies, certificate bundles)
comes between us and it.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import docker
from requests.adapters import HTTPAdapter

from riseml.executors.transports import tls_errors
from riseml.executors.transports.ssh_command import find_destination
from riseml.executors.transports.tunnel import Timing, Tunnel
from riseml.executors.transports.unix import SocketAdapter
from riseml.spec.pool.types import HostSpec, Tls
from riseml.spec.scalars.engine_url import EngineUrl, Scheme, parse_engine_url
from riseml.spec.scalars.texts import BadText

_LOCAL_HINT = "is it running? `docker info` asks it directly; DOCKER_HOST chooses another one"
_REMOTE_HINT = "is the host up, and does its Docker Engine listen there? `riseml pool check` looks closer"


@dataclass(frozen=True, slots=True)
class Keepalive:
    """When a TCP connection counts as dead, in seconds: asked after `idle` without a word, then every `interval`, dead
    after `count` questions without an answer, or when sent data is not confirmed for `unconfirmed`.
    """

    idle: int = 10
    interval: int = 5
    count: int = 3
    unconfirmed: int = 20

    def options(self) -> list[tuple[int, int, int]]:
        """The socket options, as far as this kernel has them."""
        wanted = {
            "TCP_KEEPIDLE": self.idle,
            "TCP_KEEPINTVL": self.interval,
            "TCP_KEEPCNT": self.count,
            "TCP_USER_TIMEOUT": self.unconfirmed * 1000,
        }
        known = [(socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in wanted.items() if name in _TCP]
        return [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *known]


_TCP = frozenset(dir(socket))


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long is waited, in seconds: `quick` for lists and inspections, `slow` for creates and starts, which wait for
    disks; `tcp` and `ssh` for connections that have died without a word.
    """

    quick: float = 10.0
    slow: float = 120.0
    tcp: Keepalive = field(default_factory=Keepalive)
    ssh: Timing = field(default_factory=Timing)


class Transport(Protocol):
    """A way to one engine."""

    def connect(self, version: str, timeout: float) -> docker.APIClient:
        """A client that speaks this version of the API.

        Raises:
            Unreachable: there is no way at present.
        """

    def explain_failure(self, error: Exception) -> tuple[str, str]:
        """Why a call has failed, and what to do next."""

    def reconnect(self) -> None:
        """Do not wait for the next attempt: something has changed."""

    def close(self) -> None:
        """End what was started for it."""


class SocketTransport:
    """A unix socket of this machine; also any other url that only the SDK knows.

    Args:
        url: `unix:///path`.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def connect(self, version: str, timeout: float) -> docker.APIClient:
        return _connect_socket(self._url, version, timeout)

    def explain_failure(self, error: Exception) -> tuple[str, str]:
        if self._url.startswith("ssh://"):
            return "riseml reaches an engine over ssh as a host of its pool", f"name it in pool.yml: `url: {self._url}`"
        return describe(error), _LOCAL_HINT

    def reconnect(self) -> None:
        """Every call is an attempt."""

    def close(self) -> None:
        """Nothing was started."""


class TcpTransport:
    """A TCP port, with mutual TLS or without any.

    Args:
        url: host and port.
        tls: who signed the engine's certificate, and who we are; None: no TLS.
        keepalive: when a connection counts as dead.
    """

    def __init__(self, url: EngineUrl, tls: Tls | None, keepalive: Keepalive) -> None:
        self._url = url
        self._tls = tls
        self._keepalive = keepalive

    def connect(self, version: str, timeout: float) -> docker.APIClient:
        scheme = "http" if self._tls is None else "https"
        client = _connect(str(self._url).replace("tcp", scheme, 1), version, timeout)
        client.mount(f"{scheme}://", _KeptAlive(self._keepalive))
        if self._tls is not None:
            client.verify = self._tls.ca
            client.cert = (self._tls.cert, self._tls.key)
        return client

    def explain_failure(self, error: Exception) -> tuple[str, str]:
        told = None if self._tls is None else tls_errors.explain(error, self._url, self._tls)
        return told or (describe(error), _REMOTE_HINT)

    def reconnect(self) -> None:
        """Every call is an attempt."""

    def close(self) -> None:
        """Nothing was started."""


class SshTransport:
    """A tunnel to the engine's socket on its host."""

    def __init__(self, tunnel: Tunnel) -> None:
        self._tunnel = tunnel

    def connect(self, version: str, timeout: float) -> docker.APIClient:
        return _connect_socket(f"unix://{self._tunnel.open()}", version, timeout)

    def explain_failure(self, error: Exception) -> tuple[str, str]:
        return self._tunnel.explain_failure() or (describe(error), _REMOTE_HINT)

    def reconnect(self) -> None:
        self._tunnel.reconnect()

    def close(self) -> None:
        self._tunnel.close()


def find_transport(spec: HostSpec, home: Path, patience: Timeouts) -> Transport:
    """The way to a host of the pool.

    Args:
        spec: the host.
        home: riseml's home: pinned host keys and the sockets of tunnels are there.
        patience: how long is waited.
    """
    url = parse_engine_url(spec.url)
    if url.scheme is Scheme.UNIX:
        return SocketTransport(spec.url)
    if url.scheme is Scheme.TCP:
        return TcpTransport(url, spec.tls, patience.tcp)
    return SshTransport(Tunnel(find_destination(spec, home), home / "tunnels", patience.ssh))


def find_plain_transport(url: str, patience: Timeouts) -> Transport:
    """The way to an engine that is known by its url alone, as in DOCKER_HOST."""
    try:
        found = parse_engine_url(url)
    except BadText:
        return SocketTransport(url)  # the SDK says what it makes of it when it is used
    return TcpTransport(found, None, patience.tcp) if found.scheme is Scheme.TCP else SocketTransport(url)


def describe(error: Exception) -> str:
    """The cause in a few words."""
    text = str(error)
    for words in _CAUSES:
        if words.lower() in text.lower():
            return words.lower()
    return text[:200]


_CAUSES = (
    "No such file or directory",
    "Connection refused",
    "Connection reset by peer",
    "Permission denied",
    "No route to host",
    "Network is unreachable",
    "Name or service not known",
    "Temporary failure in name resolution",
    "timed out",
)


class _KeptAlive(HTTPAdapter):
    """Connections that the kernel watches."""

    def __init__(self, keepalive: Keepalive) -> None:
        self._options = keepalive.options()
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, socket_options=self._options, **kwargs)


def _connect_socket(url: str, version: str, timeout: float) -> docker.APIClient:
    client = _connect(url, version, timeout)
    if url.startswith("unix://"):
        client.mount("http+docker://", SocketAdapter(url.removeprefix("unix://")))
    return client


def _connect(url: str, version: str, timeout: float) -> docker.APIClient:
    options: dict[str, Any] = {"base_url": url, "version": version, "timeout": timeout}
    client = docker.APIClient(**options)
    client.trust_env = False  # neither proxies nor foreign certificate bundles come between us and the engine
    return client
