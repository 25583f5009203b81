"""How one Docker Engine is reached, and what its answers mean.

The SDK makes no promise about threads, so that every thread has a client of its own; the API version is settled once.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException, ImageNotFound, create_api_error_from_http_exception
from docker.errors import NotFound as EngineNotFound

from riseml.errors import EngineError, Unreachable
from riseml.spec.pool import HostSpec

SERVER = "io.riseml.server"
EXPERIMENT = "io.riseml.experiment"
JOB = "io.riseml.job"
ATTEMPT = "io.riseml.attempt"
TITLE = "io.riseml.title"
ENVIRONMENT = "io.riseml.environment"
HOST = "io.riseml.host"

_QUICK = 10.0  # seconds: lists and inspects
_SLOW = 120.0  # creates and starts, which wait for disks
_PERMANENT = frozenset({400, 404, 409, 403})


def labelled(key: str, value: str) -> str:
    """A label as the engine's filters want it."""
    return f"{key}={value}"


class Engine:
    """The address of an engine, and clients for it.

    Args:
        url: `unix:///var/run/docker.sock` or `tcp://host:port`.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_local = url.startswith("unix://")
        self._version: str | None = None
        self._local = threading.local()

    @classmethod
    def of(cls, host: HostSpec, home: Path) -> Engine:
        """The engine of a host of the pool; `home` is where riseml keeps what it knows of hosts."""
        return cls(host.url)

    def close(self) -> None:
        """Let go of what was opened for the connection."""

    @contextmanager
    def api(self, *, patient: bool = False) -> Iterator[docker.APIClient]:
        """This thread's client, with its errors turned into ours. `patient` waits for slow disks.

        Raises:
            Unreachable: no answer; nothing is known of the effect.
            EngineError: the engine refused.
        """
        name = "patient" if patient else "quick"
        with self._translated():
            client = getattr(self._local, name, None)
            if client is None:
                client = self._connect(_SLOW if patient else _QUICK)
                setattr(self._local, name, client)
            yield client

    @contextmanager
    def stream(self) -> Iterator[docker.APIClient]:
        """A client of its own for an answer that does not end, closed afterwards."""
        with self._translated():
            client = self._connect(_QUICK)
            try:
                yield client
            finally:
                client.close()

    def version(self) -> str:
        """The engine's own version, `20.10.24`."""
        with self.api() as api:
            return str(api.version()["Version"])

    def _connect(self, timeout: float) -> docker.APIClient:
        if self._version is None:
            with docker.APIClient(base_url=self.url, version="auto", timeout=int(_QUICK)) as first:
                self._version = first.api_version
        client = docker.APIClient(base_url=self.url, version=self._version, timeout=int(timeout))
        client.trust_env = False  # neither proxies nor foreign certificate bundles come between us and the engine
        return client

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except APIError as error:
            raise translate(error) from error
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, DockerException, OSError) as error:
            raise Unreachable(
                f"the Docker Engine at {self.url} does not answer: {_cause(error)}",
                "is it running? `docker info` asks it directly; DOCKER_HOST chooses another one",
            ) from error


def translate(error: APIError) -> EngineError:
    """The engine's refusal as one of ours. Codes mislead (a missing image and a full address pool are both 404), so
    that the engine's own words are always kept."""
    text = str(error.explanation or error)
    if isinstance(error, ImageNotFound):
        return EngineError(f"the image is not there: {text}", permanent=True)
    if re.search("network .* not found", text):  # somebody removed it: it is made again, and the job started then
        return EngineError(text)
    if re.search("no space left on device", text, re.IGNORECASE):
        return EngineError(f"the disk of the host is full: {text}", "free some space, then start again", permanent=True)
    return EngineError(text, permanent=error.status_code in _PERMANENT)


def check(answer: requests.Response) -> None:
    """Turn a refusal of a plain HTTP call into the SDK's own error, as its public calls do."""
    try:
        answer.raise_for_status()
    except requests.HTTPError as error:
        raise create_api_error_from_http_exception(error) from error


def gone(error: EngineError) -> bool:
    """True when the refusal means that the thing is not there (any more)."""
    return isinstance(error.__cause__, EngineNotFound)


def _cause(error: Exception) -> str:
    text = str(error)
    for words in ("No such file or directory", "Connection refused", "Permission denied", "timed out"):
        if words.lower() in text.lower():
            return words.lower()
    return text[:200]
