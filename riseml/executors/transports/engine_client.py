"""How one Docker Engine is reached, and what its answers mean.

The SDK makes no promise about threads, so that every thread has a client of its own; the API version is settled once.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import requests
import urllib3
from docker.constants import MINIMUM_DOCKER_API_VERSION
from docker.errors import APIError, DockerException, ImageNotFound, create_api_error_from_http_exception
from docker.errors import NotFound as EngineNotFound

from riseml.errors import EngineError, Unreachable
from riseml.executors.base import NotThere
from riseml.executors.transports.routes import Timeouts, Transport, find_plain_transport, find_transport
from riseml.spec.pool.types import HostSpec

_TLS_WANTED = "HTTP request to an HTTPS server"
_PERMANENT = frozenset({400, 404, 409, 403})


class _Held:
    """A thread's client, closed when the thread has ended, or when the engine lets go of it."""

    def __init__(self, client: docker.APIClient) -> None:
        self.client = client
        weakref.finalize(self, client.close)


class Engine:
    """The address of an engine, and clients for it.

    Args:
        url: `unix:///var/run/docker.sock` or `tcp://host:port`.
        transport: the way there; None: the plain one of the url.
        patience: how long is waited.
    """

    def __init__(self, url: str, transport: Transport | None = None, patience: Timeouts = Timeouts()) -> None:
        self.url = url
        self.is_local = url.startswith("unix://")
        self._transport = transport or find_plain_transport(url, patience)
        self._patience = patience
        self._version: str | None = None
        self._local = threading.local()

    @classmethod
    def of(cls, spec: HostSpec, home: Path, patience: Timeouts = Timeouts()) -> Engine:
        """The engine of a host of the pool; nothing is connected yet. `home` is riseml's: pinned host keys and the
        sockets of tunnels are there.
        """
        return cls(spec.url, find_transport(spec, home, patience), patience)

    def retry(self) -> None:
        """Do not wait for the next attempt to reach it: something has changed."""
        self._transport.retry()

    def close(self) -> None:
        """End what was started to reach it; calls fail from then on where something was."""
        self._transport.close()
        self._local = threading.local()  # lets go of every thread's clients

    @contextmanager
    def api(self, *, patient: bool = False) -> Iterator[docker.APIClient]:
        """This thread's client, with its errors turned into ours. `patient` waits for slow disks.

        Raises:
            Unreachable: no answer; nothing is known of the effect.
            EngineError: the engine refused.
        """
        seconds = self._patience.slow if patient else self._patience.quick
        name = "patient" if patient else "quick"
        with self._translated():
            held: _Held | None = getattr(self._local, name, None)
            if held is None:
                held = _Held(self._connect(seconds))
                setattr(self._local, name, held)
            yield held.client

    @contextmanager
    def stream(self) -> Iterator[docker.APIClient]:
        """A client of its own for an answer that does not end, closed afterwards."""
        with self._translated():
            client = self._connect(self._patience.quick)
            try:
                yield client
            finally:
                client.close()

    def version(self) -> str:
        """The engine's own version, `20.10.24`."""
        with self.api() as api:
            return str(api.version()["Version"])

    def _connect(self, seconds: float) -> docker.APIClient:
        if self._version is None:
            # Not by the SDK's `auto`, which asks before anything of the connection can be set.
            with self._transport.connect(MINIMUM_DOCKER_API_VERSION, self._patience.quick) as first:
                self._version = str(first.version(api_version=False)["ApiVersion"])
        return self._transport.connect(self._version, seconds)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except APIError as error:
            if _TLS_WANTED in str(error.explanation):
                raise Unreachable(
                    f"the Docker Engine at {self.url} speaks TLS only", "give `tls` in pool.yml: ca, cert and key"
                ) from error
            raise translate(error) from error
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, DockerException, OSError) as error:
            cause, hint = self._transport.explain(error)
            raise Unreachable(f"the Docker Engine at {self.url} does not answer: {cause}", hint) from error


def translate(error: APIError) -> EngineError:
    """The engine's refusal as one of ours. Codes mislead (a missing image and a full address pool are both 404), so
    that the engine's own words are always kept."""
    text = str(error.explanation or error)
    refusal = NotThere if isinstance(error, EngineNotFound) else EngineError
    if isinstance(error, ImageNotFound):  # somebody removed it: it is made or brought again, and asked for then
        return refusal(f"the image is not there: {text}")
    if lacks_network(error):  # somebody removed it: it is made again, and the job started then
        return refusal(text)
    if re.search("no space left on device", text, re.IGNORECASE):
        return EngineError(f"the disk of the host is full: {text}", "free some space, then start again", permanent=True)
    return refusal(text, permanent=error.status_code in _PERMANENT)


def lacks_network(error: APIError) -> bool:
    """True when the refusal means that the network of a container is gone."""
    return re.search("network .* not found", str(error.explanation or error)) is not None


def check(answer: requests.Response) -> None:
    """Turn a refusal of a plain HTTP call into the SDK's own error, as its public calls do."""
    try:
        answer.raise_for_status()
    except requests.HTTPError as error:
        raise create_api_error_from_http_exception(error) from error
