"""The harness's own hands on the Docker Engine: containers by label, their times, news, and cleaning up."""

from __future__ import annotations

import os
import re
import threading
import time
from calendar import timegm
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import docker
from docker.errors import APIError

BASE = "riseml-test/base:py311"
RUN = f"bench{os.getpid()}"
"""In the names and labels of everything that this run of the benchmarks starts by hand."""

_MARK = "riseml.bench"
_LONG = 3600  # seconds without any news
_OF_RUN = f"{_MARK}.run"

Found = TypeVar("Found")


class BenchEngine:
    """One engine; each thread of the harness has a client of its own, as riseml's have."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._local = threading.local()

    @property
    def api(self) -> docker.APIClient:
        client: docker.APIClient | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = docker.APIClient(base_url=self.url, version="auto", timeout=120)
        return client

    def find(self, label: str, *, running: bool = False) -> list[str]:
        """Ids of the containers with this label."""
        return [row["Id"] for row in self.api.containers(all=not running, filters={"label": label})]

    def wait_running(self, label: str, count: int, seconds: float = 60) -> list[str]:
        """The containers with this label, once so many of them run."""
        return poll(f"{count} containers of {label} run", lambda: self._running(label, count), seconds)

    def _running(self, label: str, count: int) -> list[str] | None:
        found = self.find(label, running=True)
        return found if len(found) >= count else None

    def last_start(self, ids: list[str]) -> float:
        """When the last of them started, by the engine's clock, which is this machine's."""
        return max(moment(self.api.inspect_container(identity)["State"]["StartedAt"]) for identity in ids)

    def image_id(self, image: str) -> str:
        return str(self.api.inspect_image(image)["Id"])

    def remove(self, label: str) -> None:
        """Remove every container and network with this label, and wait until they are gone.

        A server that has just been stopped may have begun a last container: until there is none, they are looked for.
        """
        with ThreadPoolExecutor(8) as hands:
            while found := self.find(label):
                list(hands.map(self._remove, found))
        for network in self.api.networks(filters={"label": label}):
            self.api.remove_network(network["Id"])

    def _remove(self, identity: str) -> None:
        try:
            self.api.remove_container(identity, force=True, v=True)
        except APIError as error:
            if error.status_code not in (404, 409):
                raise

    def network(self, name: str, subnet: str | None = None) -> str:
        """A network of the harness."""
        pools = [docker.types.IPAMPool(subnet=subnet)] if subnet else []
        ipam = docker.types.IPAMConfig(pool_configs=pools)
        made = self.api.create_network(f"riseml-{RUN}-{name}", driver="bridge", ipam=ipam, labels=labels(name))
        return str(made["Id"])

    def clean_up(self) -> None:
        """Remove what a bench that failed, or was interrupted, has left: by the peers, too."""
        self.remove(f"{_OF_RUN}={RUN}")
        for row in self.api.containers(all=True, filters={"name": RUN}):
            self._remove(row["Id"])


class EngineEvents:
    """The engine's events about containers, in the order in which they came."""

    def __init__(self, engine: BenchEngine) -> None:
        self._client = docker.APIClient(base_url=engine.url, version="auto", timeout=_LONG)
        self._stream = self._client.events(filters={"type": "container"}, decode=True)
        self._times: dict[tuple[str, str], float] = {}
        self._turned = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def wait(self, identity: str, action: str, seconds: float = 60) -> float:
        """When this happened to the container (`start`, `die`, `destroy`), as soon as the harness knows."""
        end = time.monotonic() + seconds
        with self._turned:
            while (identity, action) not in self._times:
                if not self._turned.wait(end - time.monotonic()):
                    raise TimeoutError(f"container {identity[:12]}: no {action} within {seconds:.0f} s")
            return self._times[identity, action]

    def close(self) -> None:
        self._stream.close()
        self._client.close()

    def _read(self) -> None:
        try:
            for event in self._stream:
                with self._turned:
                    self._times.setdefault((event["Actor"]["ID"], event["Action"]), event["timeNano"] / 1e9)
                    self._turned.notify_all()
        except (OSError, ValueError, AttributeError):
            return  # closed


def container(command: list[str], label: str, network: str, **more: Any) -> dict[str, Any]:
    """What `POST /containers/create` gets for a job by hand: what riseml asks for, without its safety."""
    host = {"Init": True, "NetworkMode": network, "Binds": more.pop("binds", [])}
    return {"Image": BASE, "Entrypoint": [], "Cmd": command, "Labels": labels(label), "HostConfig": host, **more}


def labels(name: str) -> dict[str, str]:
    return {_MARK: f"{RUN}-{name}", _OF_RUN: RUN}


def by_label(name: str) -> str:
    """The filter that finds what carries `labels(name)`."""
    return f"{_MARK}={RUN}-{name}"


def moment(text: str) -> float:
    """The engine's RFC 3339 time as seconds since the epoch."""
    found = re.fullmatch(r"(.*?)(\.\d+)?Z", text)
    if found is None:
        raise ValueError(f"no time of the engine: {text}")
    return timegm(time.strptime(found[1], "%Y-%m-%dT%H:%M:%S")) + float(found[2] or 0)


def poll(what: str, look: Callable[[], Found | None], seconds: float = 60, pause: float = 0.02) -> Found:
    """Ask until there is an answer."""
    end = time.monotonic() + seconds
    waiting = threading.Event()
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        waiting.wait(pause)
    raise TimeoutError(f"in vain waited {seconds:.0f} s until {what}")


def parallel(calls: Sequence[Callable[[], object]]) -> None:
    """Call all of them at the same time."""
    with ThreadPoolExecutor(len(calls)) as hands:
        for future in [hands.submit(call) for call in calls]:
            future.result()
