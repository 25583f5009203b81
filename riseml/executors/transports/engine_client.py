"""Clients for one Docker Engine, and its refusals as errors of riseml.

The Docker SDK promises nothing about threads, so every thread has its own client. The API version is settled once.
"""

from __future__ import annotations

import re
import socket
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import docker
import requests
import urllib3
from docker.constants import MINIMUM_DOCKER_API_VERSION
from docker.errors import APIError, DockerException, ImageNotFound, create_api_error_from_http_exception
from docker.errors import NotFound as EngineNotFound

from riseml.base.errors import DiskFull, EngineError, Unreachable
from riseml.executors.base import NotThere
from riseml.executors.transports.routes import Timeouts, Transport, find_plain_transport, find_transport
from riseml.spec.pool.types import HostSpec

_TLS_WANTED = "HTTP request to an HTTPS server"  # an engine with TLS answers this to a plain HTTP request
_NOT_RUNNING = frozenset({404, 409})  # HTTP; a container or a command that does not exist, or does not run
_PERMANENT_STATUSES = frozenset({400, 403, 404, 409})  # HTTP; the same request gets the same answer

# Refusals with such a status that pass: what an earlier container has (its address, its end of a network, its name) is
# free a moment later, or once an engine has restarted.
_PASSING = re.compile(
    "address already in use|endpoint with name .*already exists|has active endpoints|is already in use by container"
    "|removal .*in progress|marked for removal|is restarting, wait until",
    re.IGNORECASE,
)


class _ThreadClient:
    """The client of one thread; it is closed when the thread ends or the engine is closed."""

    def __init__(self, client: docker.APIClient) -> None:
        self.client = client
        weakref.finalize(self, client.close)


SEND_PATIENCE = 120.0
"""Seconds within which an engine takes the next piece of a request's body, which waits for its disk. urllib3 counts the
timeout for connecting for each piece, too."""

NEWEST_API = (1, 45)
"""The newest version of the Docker Engine API that the tests have tried: Engine 26.1's."""


def choose_api_version(offered: str) -> str:
    """Return the API version to speak with an engine that offers `offered`, for instance `1.41`.

    An older engine gets its own newest version. A newer one gets `NEWEST_API`, because every version of the API may
    drop fields that riseml reads; Engine 29 still answers from version 1.44 on.
    """
    major, minor = (int(part) for part in offered.split("."))
    return "{}.{}".format(*min((major, minor), NEWEST_API))


class Engine:
    """One Docker Engine. The first call connects.

    Args:
        url: `unix:///var/run/docker.sock` or `tcp://host:port`.
        transport: how to reach the engine; None: directly at the url.
        timeouts: how long calls wait.

    Example:
        >>> engine = Engine("unix:///var/run/docker.sock")
        >>> with engine.api() as api:
        ...     api.containers()
    """

    def __init__(self, url: str, transport: Transport | None = None, timeouts: Timeouts = Timeouts()) -> None:
        self.url = url
        self.is_local = url.startswith("unix://")
        self._transport = transport or find_plain_transport(url, timeouts)
        self._timeouts = timeouts
        self._version: str | None = None
        self._clients = threading.local()

    @classmethod
    def of_host(cls, spec: HostSpec, home: Path, timeouts: Timeouts = Timeouts()) -> Engine:
        """Return the engine of a host of the pool.

        Args:
            spec: the host.
            home: RISEML_HOME, which has the pinned host keys and the sockets of the ssh tunnels.
            timeouts: how long calls wait.
        """
        return cls(spec.url, find_transport(spec, home, timeouts), timeouts)

    def reconnect(self) -> None:
        """Try at once to reach the engine, instead of after the current delay."""
        self._transport.reconnect()

    def close(self) -> None:
        """Close all clients and the ssh tunnel. Later calls over a tunnel fail."""
        self._transport.close()
        self._clients = threading.local()  # so that every thread drops its client

    @contextmanager
    def api(self, *, patient: bool = False, brief: bool = False) -> Iterator[docker.APIClient]:
        """Give this thread's client; its errors become those of riseml.

        Args:
            patient: wait as long as creates and starts may take, which wait for disks.
            brief: wait for less than a second, so that a pass of the loop does not wait.

        Raises:
            Unreachable: the engine did not answer; the effect of the call is unknown.
            EngineError: the engine refused.
        """
        seconds = self._timeouts.quick
        name = "quick"
        if patient or brief:
            seconds, name = (self._timeouts.slow, "patient") if patient else (self._timeouts.brief, "brief")
        with self._translate_errors():
            thread_client: _ThreadClient | None = getattr(self._clients, name, None)
            if thread_client is None:
                thread_client = _ThreadClient(self._connect_client(seconds))
                setattr(self._clients, name, thread_client)
            yield thread_client.client

    @contextmanager
    def stream(self) -> Iterator[docker.APIClient]:
        """Give a new client for an answer that does not end; it is closed afterwards.

        Raises:
            Unreachable: the engine did not answer.
            EngineError: the engine refused.
        """
        with self._translate_errors():
            client = self._connect_client(self._timeouts.quick)
            try:
                yield client
            finally:
                client.close()

    def open_stream(self, path: str, body: Mapping[str, object] | None) -> tuple[socket.socket, bytes]:
        """Send a request that the engine answers with a two-way stream: `/exec/4f2/start`.

        Returns:
            The connection, which the caller closes, and its first bytes, when they came with the answer.

        Raises:
            Unreachable: the engine did not answer.
            EngineError: the engine refused; `NotThere`: the object of the path does not exist, or does not run.
        """
        # imported here, so that a server's start does not wait for the import of h11
        from riseml.executors.transports.upgrade import UpgradeRefused, upgrade_connection

        with self.api() as api:
            connection = self._transport.dial(self._timeouts.quick)
            try:
                received = upgrade_connection(connection, f"/v{api.api_version}{path}", body)
            except UpgradeRefused as error:
                connection.close()
                raise translate_status(error.status, str(error)) from error
            except BaseException:
                connection.close()
                raise
        connection.settimeout(None)
        return connection, received

    def version(self) -> str:
        """Return the version of the engine: `20.10.24`."""
        with self.api() as api:
            return str(api.version()["Version"])

    def _connect_client(self, seconds: float) -> docker.APIClient:
        if self._version is None:
            # The SDK's `auto` would ask for the version before its connections can be configured.
            with self._transport.connect(MINIMUM_DOCKER_API_VERSION, self._timeouts.quick) as first:
                self._version = choose_api_version(str(first.version(api_version=False)["ApiVersion"]))
        return self._transport.connect(self._version, seconds)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except APIError as error:
            if _TLS_WANTED in str(error.explanation):
                raise Unreachable(
                    f"the Docker Engine at {self.url} speaks TLS only",
                    "give `tls` in pool.yml: ca, cert and key; or DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH",
                ) from error
            raise translate_refusal(error) from error
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, DockerException, OSError) as error:
            cause, hint = self._transport.explain_failure(error)
            raise Unreachable(f"the Docker Engine at {self.url} does not answer: {cause}", hint) from error


def translate_refusal(error: APIError) -> EngineError:
    """Return an engine's refusal as an error of riseml.

    A missing image, a missing network and a full address pool are all 404, so the message keeps the engine's words. A
    missing image or network is not permanent: the server creates it again, then starts the job.
    """
    text = str(error.explanation or error)
    refusal = NotThere if isinstance(error, EngineNotFound) else EngineError
    if isinstance(error, ImageNotFound):
        return refusal(f"the image is not there: {text}")
    if lacks_network(error):
        return refusal(text)
    if re.search("no space left on device", text, re.IGNORECASE):
        return DiskFull(f"the disk of the host is full: {text}", "free some space, then start again", permanent=True)
    return refusal(text, permanent=error.status_code in _PERMANENT_STATUSES and not _PASSING.search(text))


def translate_status(status: int, words: str) -> EngineError:
    """Return an engine's refusal of a request for a stream as an error of riseml."""
    refusal = NotThere if status in _NOT_RUNNING else EngineError
    return refusal(words or f"the engine answered {status}", permanent=status in _PERMANENT_STATUSES)


def lacks_network(error: APIError) -> bool:
    """Return whether the engine refused because the network of a container does not exist."""
    return re.search("network .* not found", str(error.explanation or error)) is not None


def raise_for_refusal(answer: requests.Response) -> None:
    """Raise a refusal of a plain HTTP call as the SDK's public calls do.

    Raises:
        APIError: the engine refused.
    """
    try:
        answer.raise_for_status()
    except requests.HTTPError as error:
        raise create_api_error_from_http_exception(error) from error
